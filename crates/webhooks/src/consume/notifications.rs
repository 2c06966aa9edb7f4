//! Consumes `evaluation.announced.v1`, `evaluation.retracted.v1` and `export.finished.v1`. One queue for all of them, so that
//! each topic has exactly one queue.

use assay_contracts::event::{Event, Topic};
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use crate::app::{EnqueueDeliveries, decode};
use crate::store::{CONSUMER, ReceivedEvent};

const TOPICS: &[Topic] = &[EvaluationAnnounced::TOPIC, EvaluationRetracted::TOPIC, ExportFinished::TOPIC];

const MAX_BATCH: usize = 128;
const MAX_IN_FLIGHT: usize = 512;

pub(crate) fn subscription() -> Subscription {
    Subscription { queue: CONSUMER, topics: TOPICS, max_batch: MAX_BATCH, max_in_flight: MAX_IN_FLIGHT }
}

/// Handles a batch of events; a batch that fails is retried one event at a time.
pub(crate) struct NotificationsHandler {
    pub(crate) enqueue_deliveries: EnqueueDeliveries,
}

#[async_trait]
impl Handler for NotificationsHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let decoded: Vec<Result<ReceivedEvent, String>> =
            deliveries.iter().map(|delivery| decode(delivery).map_err(|error| error.to_string())).collect();
        let all: Vec<ReceivedEvent> = decoded.iter().flatten().cloned().collect();
        let batch_result = self.enqueue_deliveries.run(all).await;
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for received in decoded {
            outcomes.push(match (received, &batch_result) {
                (Err(reason), _) => Outcome::Reject { reason },
                (Ok(_), Ok(())) => Outcome::Done,
                (Ok(_), Err(error)) if error.is_transient() => retry(error),
                // One event is at fault: it must not block the rest of the batch.
                (Ok(received), Err(_)) => match self.enqueue_deliveries.run(vec![received]).await {
                    Ok(()) => Outcome::Done,
                    Err(error) => retry(&error),
                },
            });
        }
        outcomes
    }
}

fn retry(error: &dyn std::fmt::Display) -> Outcome {
    Outcome::Retry { reason: error.to_string() }
}
