//! `evaluation.announced.v1`, `evaluation.retracted.v1` and `export.finished.v1`: what endpoints are told, and what is to be
//! forgotten of it. All in one queue, so that each of the topics has exactly one.

use assay_contracts::announcement::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_contracts::event::{Event, Topic};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use async_trait::async_trait;

use crate::app::{Intake, decode};
use crate::store::{CONSUMER, Received};

const TOPICS: &[Topic] = &[EvaluationAnnounced::TOPIC, EvaluationRetracted::TOPIC, ExportFinished::TOPIC];

const MAX_BATCH: usize = 128;
const MAX_IN_FLIGHT: usize = 512;

/// What the role subscribes to.
pub(crate) fn subscription() -> Subscription {
    Subscription { queue: CONSUMER, topics: TOPICS, max_batch: MAX_BATCH, max_in_flight: MAX_IN_FLIGHT }
}

/// Takes in what a batch of deliveries brings.
pub(crate) struct AnnouncementsHandler {
    pub(crate) intake: Intake,
}

#[async_trait]
impl Handler for AnnouncementsHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let decoded: Vec<Result<Received, String>> =
            deliveries.iter().map(|delivery| decode(delivery).map_err(|error| error.to_string())).collect();
        let all: Vec<Received> = decoded.iter().flatten().cloned().collect();
        let together = self.intake.take_in(all).await;
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for received in decoded {
            outcomes.push(match (received, &together) {
                (Err(reason), _) => Outcome::Reject { reason },
                (Ok(_), Ok(())) => Outcome::Done,
                (Ok(_), Err(error)) if error.is_transient() => retry(error),
                // One of them is at fault: it must not hold up its neighbours.
                (Ok(received), Err(_)) => match self.intake.take_in(vec![received]).await {
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
