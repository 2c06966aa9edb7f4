//! `export.requested.v1`: a job was created.
//!
//! The event only wakes a worker, which claims the oldest job. The job itself is stored in the database, so the event is
//! acknowledged at once.

use std::sync::Arc;

use assay_contracts::event::{Event, ExportRequested, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;
use tokio::sync::Notify;

/// Queue name, without the namespace of the bus. Shared by all processes of the role.
pub const QUEUE: &str = "export-worker.export-requested";

const TOPICS: &[Topic] = &[ExportRequested::TOPIC];

pub(crate) fn subscription() -> Subscription {
    Subscription { queue: QUEUE, topics: TOPICS, max_batch: 1, max_in_flight: 16 }
}

pub(crate) struct ExportRequestedHandler {
    pub(crate) wakeup: Arc<Notify>,
}

#[async_trait]
impl Handler for ExportRequestedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let wake = |delivery: &Delivery| match delivery.decode::<ExportRequested>() {
            Ok(_) => {
                self.wakeup.notify_one();
                Outcome::Done
            }
            Err(error) => Outcome::Reject { reason: error.to_string() },
        };
        deliveries.iter().map(wake).collect()
    }
}
