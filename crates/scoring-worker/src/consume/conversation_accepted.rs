//! `conversation.accepted.v1`: evaluate the conversation.

use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use crate::app::{Accepted, EvaluateConversations};

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = "scoring-worker.conversation-accepted";

const TOPICS: &[Topic] = &[ConversationAccepted::TOPIC];

/// What the role subscribes to.
pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

/// Evaluates the conversations of a batch of deliveries.
pub(crate) struct ConversationAcceptedHandler {
    pub(crate) evaluate: EvaluateConversations,
    /// Attempts at a delivery before the bus makes it a dead letter.
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
        let verdicts = self.evaluate.run(&accepted).await;
        deliveries
            .iter()
            .zip(decoded)
            .map(|(delivery, event)| match (event, verdicts.get(&delivery.id)) {
                (Err(error), _) => Outcome::Reject { reason: error.to_string() },
                (Ok(_), Some(Ok(()))) => Outcome::Done,
                // Whether it is an outage or a mistake of ours: a later attempt may succeed, and the last one makes it
                // a dead letter that somebody looks at.
                (Ok(_), Some(Err(error))) => Outcome::Retry { reason: error.to_string() },
                (Ok(_), None) => Outcome::Retry { reason: "the event was not looked at".to_owned() },
            })
            .collect()
    }
}
