//! `conversation.deleted.v1`: replaces the evaluation with a tombstone.

use std::sync::Arc;

use assay_contracts::event::{ConversationDeleted, Event, Topic};
use assay_contracts::ids::EventId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{BatchHandler, Delivery, Subscription, all_or_each};
use assay_platform::runtime::BoxError;
use async_trait::async_trait;

use crate::app::{HandleError, WebhookSubscribers, delete_evaluations};
use crate::store::EvaluationStore;

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversation-deleted";

const TOPICS: &[Topic] = &[ConversationDeleted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationDeletedHandler {
    pub(crate) store: EvaluationStore,
    pub(crate) outbox: Outbox,
    pub(crate) subscribers: WebhookSubscribers,
}

#[async_trait]
impl BatchHandler for ConversationDeletedHandler {
    type Event = (EventId, ConversationDeleted);
    type Error = Arc<HandleError>;

    fn decode(&self, delivery: &Delivery) -> Result<Self::Event, BoxError> {
        Ok((delivery.id, delivery.decode()?))
    }

    async fn handle_events(&self, events: Vec<Self::Event>) -> Vec<Result<(), Self::Error>> {
        let delete = |events: Arc<Vec<Self::Event>>| async move {
            delete_evaluations(&self.store, &self.subscribers, &events).await
        };
        let results = all_or_each(events, HandleError::is_transient, delete).await;
        self.outbox.wake();
        results
    }

    fn is_transient(error: &Self::Error) -> bool {
        error.is_transient()
    }
}
