//! Consumes `evaluation.announced.v1`, `evaluation.retracted.v1` and `export.finished.v1`. All share one queue.
//! `evaluation.announced.v1` is an event of its own because a topic that must not be lost has exactly one queue, and that of
//! `conversation.evaluated.v1` is export's (ADR 20).

use std::sync::Arc;

use assay_contracts::event::{Event, Topic};
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_messaging::{BatchHandler, Delivery, Subscription, all_or_each};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::BoxError;
use async_trait::async_trait;

use crate::app::{EnqueueMessages, decode_event};
use crate::store::{CONSUMER, ReceivedEvent};

const TOPICS: &[Topic] = &[EvaluationAnnounced::TOPIC, EvaluationRetracted::TOPIC, ExportFinished::TOPIC];

const MAX_BATCH: usize = 128;
const MAX_IN_FLIGHT: usize = 512;

pub(crate) fn subscription() -> Subscription {
    Subscription { queue: CONSUMER, topics: TOPICS, max_batch: MAX_BATCH, max_in_flight: MAX_IN_FLIGHT }
}

pub(crate) struct NotificationsHandler {
    pub(crate) enqueue_messages: EnqueueMessages,
}

#[async_trait]
impl BatchHandler for NotificationsHandler {
    type Event = ReceivedEvent;
    type Error = Arc<DatabaseError>;

    fn decode(&self, delivery: &Delivery) -> Result<ReceivedEvent, BoxError> {
        Ok(decode_event(delivery)?)
    }

    async fn handle_events(&self, received: Vec<ReceivedEvent>) -> Vec<Result<(), Self::Error>> {
        let enqueue = |received| self.enqueue_messages.run(Arc::unwrap_or_clone(received));
        all_or_each(received, DatabaseError::is_transient, enqueue).await
    }

    fn is_transient(error: &Self::Error) -> bool {
        error.is_transient()
    }
}
