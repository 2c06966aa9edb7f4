//! `conversations.expired.v1`: records failures for conversations that were not evaluated in time.

use std::sync::Arc;

use assay_contracts::event::{ConversationsExpired, Event, Topic};
use assay_messaging::outbox::Outbox;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use super::handle_batch;
use crate::app::{WebhookSubscribers, fail_expired};
use crate::store::EvaluationStore;

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "scoring-worker.conversations-expired";

const TOPICS: &[Topic] = &[ConversationsExpired::TOPIC];

/// Small limits: one event contains many conversations.
pub(crate) fn subscription() -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch: 4, max_in_flight: 8 }
}

pub(crate) struct ConversationsExpiredHandler {
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) outbox: Outbox,
    pub(crate) subscribers: WebhookSubscribers,
}

#[async_trait]
impl Handler for ConversationsExpiredHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let fail = |events| fail_expired(self.store.as_ref(), &self.subscribers, events);
        let outcomes = handle_batch::<ConversationsExpired, _>(deliveries, fail).await;
        self.outbox.wake();
        outcomes
    }
}
