//! `evaluation.deleted.v1`: replaces the row of the ticket with a tombstone.

use std::sync::Arc;

use assay_contracts::event::{EvaluationDeleted, Event, Topic};
use assay_messaging::{BatchHandler, Delivery, Subscription, all_or_each};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{BoxError, now};
use async_trait::async_trait;

use crate::domain::removal::DeletedRow;
use crate::store::{DELETIONS_CONSUMER, ExportStore};

const TOPICS: &[Topic] = &[EvaluationDeleted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: DELETIONS_CONSUMER, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct EvaluationDeletedHandler {
    pub(crate) store: ExportStore,
}

#[async_trait]
impl BatchHandler for EvaluationDeletedHandler {
    type Event = DeletedRow;
    type Error = Arc<DatabaseError>;

    fn decode(&self, delivery: &Delivery) -> Result<DeletedRow, BoxError> {
        Ok(DeletedRow::of(delivery.id, &delivery.decode()?))
    }

    async fn handle_events(&self, rows: Vec<DeletedRow>) -> Vec<Result<(), Self::Error>> {
        let delete = |rows| self.store.delete_rows(Arc::unwrap_or_clone(rows), now());
        all_or_each(rows, DatabaseError::is_transient, delete).await
    }

    fn is_transient(error: &Self::Error) -> bool {
        error.is_transient()
    }
}
