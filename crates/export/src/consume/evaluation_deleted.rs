//! `evaluation.deleted.v1`: replaces the row of the ticket with a tombstone.

use std::sync::Arc;

use assay_contracts::event::{EvaluationDeleted, Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::runtime::now;
use async_trait::async_trait;

use super::retry;
use crate::domain::removal::DeletedRow;
use crate::store::{DELETIONS_CONSUMER, ExportStore};

const TOPICS: &[Topic] = &[EvaluationDeleted::TOPIC];

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: DELETIONS_CONSUMER, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct EvaluationDeletedHandler {
    pub(crate) store: Arc<dyn ExportStore>,
}

#[async_trait]
impl Handler for EvaluationDeletedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let decode = |delivery: &Delivery| {
            delivery.decode::<EvaluationDeleted>().map(|event| DeletedRow::of(delivery.id, &event))
        };
        let rows: Vec<DeletedRow> = deliveries.iter().filter_map(|delivery| decode(delivery).ok()).collect();
        let batch_result = self.store.delete_rows(rows, now()).await;
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            outcomes.push(match (decode(delivery), &batch_result) {
                (Err(error), _) => Outcome::Reject { reason: error.to_string() },
                (Ok(_), Ok(())) => Outcome::Done,
                (Ok(_), Err(error)) if error.is_transient() => retry(&error.to_string()),
                // One of the rows is refused: retry them one by one.
                (Ok(row), Err(_)) => match self.store.delete_rows(vec![row], now()).await {
                    Ok(()) => Outcome::Done,
                    Err(error) => retry(&error.to_string()),
                },
            });
        }
        outcomes
    }
}
