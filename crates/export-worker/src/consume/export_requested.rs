//! `export.requested.v1`: there is a job.
//!
//! The event only wakes a worker, which then takes the oldest job that waits: the job itself stands in the database,
//! where it cannot be lost, and waits there while every worker is busy. So the event is done with at once, however
//! long the job takes.

use std::sync::Arc;

use assay_contracts::event::{Event, ExportRequested, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;
use tokio::sync::Notify;

/// The queue that all processes of the role share, without the namespace of the bus.
pub const QUEUE: &str = "export-worker.export-requested";

const TOPICS: &[Topic] = &[ExportRequested::TOPIC];

/// What the role subscribes to.
pub(crate) fn subscription() -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch: 1, max_in_flight: 16 }
}

/// Wakes a worker for each job.
pub(crate) struct ExportRequestedHandler {
    pub(crate) news: Arc<Notify>,
}

#[async_trait]
impl Handler for ExportRequestedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        deliveries.iter().map(|delivery| self.wake(delivery)).collect()
    }
}

impl ExportRequestedHandler {
    fn wake(&self, delivery: &Delivery) -> Outcome {
        match delivery.decode::<ExportRequested>() {
            Ok(_) => {
                self.news.notify_one();
                Outcome::Done
            }
            Err(error) => Outcome::Reject { reason: error.to_string() },
        }
    }
}
