//! `conversation.evaluated.v1`: adds the evaluation to the read model of exports.

use std::sync::Arc;

use assay_contracts::event::{ConversationEvaluated, Event, Topic};
use assay_contracts::ids::EventId;
use assay_messaging::{BatchHandler, Delivery, Subscription};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{BoxError, now};
use async_trait::async_trait;

use crate::app::record_evaluations::record_evaluations;
use crate::domain::removal::is_too_old;
use crate::store::{CONSUMER, ExportStore};

// The brackets select the default of the event's type parameter.
const TOPICS: &[Topic] = &[<ConversationEvaluated>::TOPIC];

/// Reason shown to an operator who retries a very old dead letter.
const TOO_OLD: &str = "event is more than 90 days old, and its ticket may have been deleted since: drop it";

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: CONSUMER, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationEvaluatedHandler {
    pub(crate) store: ExportStore,
}

#[async_trait]
impl BatchHandler for ConversationEvaluatedHandler {
    type Event = (EventId, ConversationEvaluated);
    type Error = Arc<DatabaseError>;

    fn decode(&self, delivery: &Delivery) -> Result<Self::Event, BoxError> {
        if is_too_old(delivery.id, now()) {
            return Err(TOO_OLD.into());
        }
        Ok((delivery.id, delivery.decode()?))
    }

    async fn handle_events(&self, events: Vec<Self::Event>) -> Vec<Result<(), Self::Error>> {
        record_evaluations(&self.store, events).await
    }

    fn is_transient(error: &Self::Error) -> bool {
        error.is_transient()
    }
}
