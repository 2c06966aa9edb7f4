//! `conversation.accepted.v1`: evaluate the conversation.

use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use crate::app::{Accepted, EvaluateConversations};

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversation-accepted";

const TOPICS: &[Topic] = &[ConversationAccepted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationAcceptedHandler {
    pub(crate) evaluate: EvaluateConversations,
    /// Delivery attempts before an event becomes a dead letter.
    pub(crate) max_attempts: u32,
}

#[async_trait]
impl Handler for ConversationAcceptedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let decoded: Vec<_> = deliveries.iter().map(Delivery::decode::<ConversationAccepted>).collect();
        let accepted: Vec<_> = deliveries
            .iter()
            .zip(&decoded)
            .filter_map(|(delivery, event)| {
                let is_last_attempt = delivery.attempt >= self.max_attempts;
                Some(Accepted {
                    event_id: delivery.id,
                    event: event.as_ref().ok()?.clone(),
                    context: delivery.context(),
                    is_last_attempt,
                })
            })
            .collect();
        let results = self.evaluate.run(&accepted).await;
        deliveries
            .iter()
            .zip(decoded)
            .map(|(delivery, event)| match (event, results.get(&delivery.id)) {
                (Err(error), _) => Outcome::Reject { reason: error.to_string() },
                (Ok(_), Some(Ok(()))) => Outcome::Done,
                // Outage or bug: a later attempt may succeed, and after the last one the event is a dead letter for an
                // operator.
                (Ok(_), Some(Err(error))) => Outcome::Retry { reason: error.to_string() },
                (Ok(_), None) => Outcome::Retry { reason: "the event was not handled".to_owned() },
            })
            .collect()
    }
}
