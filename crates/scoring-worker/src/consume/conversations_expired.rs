//! `conversations.expired.v1`: records failures for conversations that were not evaluated in time.

use std::sync::Arc;

use assay_contracts::event::{ConversationsExpired, Event, Topic};
use assay_contracts::ids::EventId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{BatchHandler, Delivery, Subscription, all_or_each};
use assay_platform::runtime::BoxError;
use async_trait::async_trait;

use crate::app::{HandleError, WebhookSubscribers, fail_expired};
use crate::store::EvaluationStore;

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversations-expired";

const TOPICS: &[Topic] = &[ConversationsExpired::TOPIC];

/// Small limits: one event contains many conversations.
pub(crate) fn subscription() -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch: 4, max_in_flight: 8 }
}

pub(crate) struct ConversationsExpiredHandler {
    pub(crate) store: EvaluationStore,
    pub(crate) outbox: Outbox,
    pub(crate) subscribers: WebhookSubscribers,
}

#[async_trait]
impl BatchHandler for ConversationsExpiredHandler {
    type Event = (EventId, ConversationsExpired);
    type Error = Arc<HandleError>;

    fn decode(&self, delivery: &Delivery) -> Result<Self::Event, BoxError> {
        Ok((delivery.id, delivery.decode()?))
    }

    async fn handle_events(&self, events: Vec<Self::Event>) -> Vec<Result<(), Self::Error>> {
        let fail = |events: Arc<Vec<Self::Event>>| async move {
            fail_expired(&self.store, &self.subscribers, &events).await
        };
        let results = all_or_each(events, HandleError::is_transient, fail).await;
        self.outbox.wake();
        results
    }

    fn is_transient(error: &Self::Error) -> bool {
        error.is_transient()
    }
}
