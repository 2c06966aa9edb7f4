//! `conversation.deleted.v1`: replaces the evaluation with a tombstone.

use std::sync::Arc;

use assay_contracts::event::{ConversationDeleted, Event, Topic};
use assay_messaging::outbox::Outbox;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use super::handle_batch;
use crate::app::{WebhookSubscribers, delete_evaluations};
use crate::store::EvaluationStore;

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversation-deleted";

const TOPICS: &[Topic] = &[ConversationDeleted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationDeletedHandler {
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) outbox: Outbox,
    pub(crate) subscribers: WebhookSubscribers,
}

#[async_trait]
impl Handler for ConversationDeletedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let delete = |events| delete_evaluations(self.store.as_ref(), &self.subscribers, events);
        let outcomes = handle_batch::<ConversationDeleted, _>(deliveries, delete).await;
        self.outbox.wake();
        outcomes
    }
}
