//! `conversation.accepted.v1`: evaluate the conversation.

use assay_contracts::event::{ConversationAccepted, Event, Topic};
use assay_contracts::ids::TicketId;
use assay_messaging::{BatchHandler, Delivery, Subscription};
use assay_platform::runtime::BoxError;
use async_trait::async_trait;
use serde::Deserialize;

use crate::app::{Accepted, EvaluateConversations, EvaluateError};

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversation-accepted";

/// The name of parked conversations in metrics and in readiness. It is no queue of the bus.
pub(crate) const PARKED_QUEUE: &str = "scoring-worker.parked-conversations";

const TOPICS: &[Topic] = &[ConversationAccepted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationAcceptedHandler {
    pub(crate) evaluate: EvaluateConversations,
}

/// The part of an event that says which conversation it was.
#[derive(Deserialize)]
struct AcceptedTicket {
    ticket_id: TicketId,
}

#[async_trait]
impl BatchHandler for ConversationAcceptedHandler {
    type Event = Accepted;
    type Error = EvaluateError;

    fn decode(&self, delivery: &Delivery) -> Result<Accepted, BoxError> {
        Ok(Accepted {
            event_id: delivery.id,
            event: delivery.decode()?,
            context: delivery.context(),
            is_last_attempt: delivery.is_last_attempt,
        })
    }

    /// The ticket is enough to record the failure.
    fn decode_given_up(&self, delivery: &Delivery) -> Option<Accepted> {
        let AcceptedTicket { ticket_id } = delivery.decode_part()?;
        let (organization_id, accepted_at) = (delivery.organization_id, delivery.occurred_at);
        Some(Accepted {
            event_id: delivery.id,
            event: ConversationAccepted { organization_id, ticket_id, accepted_at },
            context: delivery.context(),
            is_last_attempt: delivery.is_last_attempt,
        })
    }

    async fn handle_events(&self, accepted: Vec<Accepted>) -> Vec<Result<(), EvaluateError>> {
        let results = self.evaluate.run(&accepted).await;
        let result = |event: &Accepted| results.get(&event.event_id).cloned();
        accepted.iter().map(|event| result(event).unwrap_or(Err(EvaluateError::Missing))).collect()
    }

    async fn give_up(&self, accepted: Accepted) -> Result<(), EvaluateError> {
        self.evaluate.give_up(accepted).await
    }
}
