//! `conversations.expired.v1`: what was not evaluated until its transcript was removed has failed.

use std::sync::Arc;

use assay_contracts::event::{ConversationsExpired, Event, Topic};
use assay_messaging::outbox::Outbox;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use super::one_by_one_on_failure;
use crate::app::{Interest, fail_expired};
use crate::store::EvaluationStore;

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = "scoring-worker.conversations-expired";

const TOPICS: &[Topic] = &[ConversationsExpired::TOPIC];

/// What the role subscribes to. An event stands for many conversations already.
pub(crate) fn subscription() -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch: 4, max_in_flight: 8 }
}

/// Fails what was never evaluated among the conversations of a batch of deliveries.
pub(crate) struct ConversationsExpiredHandler {
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) outbox: Outbox,
    pub(crate) interest: Interest,
}

#[async_trait]
impl Handler for ConversationsExpiredHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let fail = |events| fail_expired(self.store.as_ref(), &self.interest, events);
        let outcomes = one_by_one_on_failure::<ConversationsExpired, _>(deliveries, fail).await;
        self.outbox.wake();
        outcomes
    }
}
