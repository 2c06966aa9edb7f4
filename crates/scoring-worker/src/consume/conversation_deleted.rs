//! `conversation.deleted.v1`: the evaluation goes, and none is made any more.

use std::sync::Arc;

use assay_contracts::event::{ConversationDeleted, Event, Topic};
use assay_messaging::outbox::Outbox;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use super::one_by_one_on_failure;
use crate::app::{Interest, delete_evaluations};
use crate::store::EvaluationStore;

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = "scoring-worker.conversation-deleted";

const TOPICS: &[Topic] = &[ConversationDeleted::TOPIC];

/// What the role subscribes to.
pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch, max_in_flight }
}

/// Deletes the evaluations of a batch of deliveries.
pub(crate) struct ConversationDeletedHandler {
    pub(crate) store: Arc<dyn EvaluationStore>,
    pub(crate) outbox: Outbox,
    pub(crate) interest: Interest,
}

#[async_trait]
impl Handler for ConversationDeletedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let delete = |events| delete_evaluations(self.store.as_ref(), &self.interest, events);
        let outcomes = one_by_one_on_failure::<ConversationDeleted, _>(deliveries, delete).await;
        self.outbox.wake();
        outcomes
    }
}
