//! `conversation.evaluated.v1`: adds the evaluation to the read model of exports.

use std::sync::Arc;

use assay_contracts::event::{ConversationEvaluated, Event, Topic};
use assay_contracts::ids::EventId;
use assay_contracts::time::Timestamp;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::runtime::now;
use async_trait::async_trait;

use super::retry;
use crate::app::record_evaluations::{record_evaluations, render_evaluations};
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::removal::is_too_old;
use crate::store::{CONSUMER, ExportStore};

const TOPICS: &[Topic] = &[<ConversationEvaluated>::TOPIC];

/// Reason shown to an operator who retries a very old dead letter.
const TOO_OLD: &str = "event is more than 90 days old, and its ticket may have been deleted since: drop it";

pub(crate) fn subscription(max_batch: usize, max_in_flight: usize) -> Subscription {
    Subscription { queue: CONSUMER, topics: TOPICS, max_batch, max_in_flight }
}

pub(crate) struct ConversationEvaluatedHandler {
    pub(crate) store: Arc<dyn ExportStore>,
}

#[async_trait]
impl Handler for ConversationEvaluatedHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let now = now();
        let mut events = Vec::with_capacity(deliveries.len());
        let mut refusals = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            match decode(delivery, now) {
                Ok(event) => {
                    events.push((delivery.id, event));
                    refusals.push(None);
                }
                Err(reason) => refusals.push(Some(Outcome::Reject { reason })),
            }
        }
        let mut outcomes = self.record(events).await.into_iter();
        refusals
            .into_iter()
            // One outcome for each event; a missing one must not count as success.
            .map(|refusal| refusal.or_else(|| outcomes.next()))
            .map(|outcome| outcome.unwrap_or_else(|| retry("the event was not handled")))
            .collect()
    }
}

fn decode(delivery: &Delivery, now: Timestamp) -> Result<ConversationEvaluated, String> {
    if is_too_old(delivery.id, now) {
        return Err(TOO_OLD.to_owned());
    }
    delivery.decode().map_err(|error| error.to_string())
}

impl ConversationEvaluatedHandler {
    /// One outcome for each event. If the database refuses the batch permanently, the events are retried one by one, so that
    /// one bad event does not block the others.
    async fn record(&self, events: Vec<(EventId, ConversationEvaluated)>) -> Vec<Outcome> {
        let count = events.len();
        let all = |outcome: Outcome| vec![outcome; count];
        let rows = match render_evaluations(events).await {
            Ok(rows) => rows,
            Err(error) => return all(retry(&error.to_string())),
        };
        match record_evaluations(self.store.as_ref(), rows.clone()).await {
            Ok(()) => all(Outcome::Done),
            Err(error) if count == 1 || error.is_transient() => all(retry(&error.to_string())),
            Err(_) => self.record_one_by_one(rows).await,
        }
    }

    async fn record_one_by_one(&self, rows: Vec<EvaluationRow>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(rows.len());
        for row in rows {
            outcomes.push(match record_evaluations(self.store.as_ref(), vec![row]).await {
                Ok(()) => Outcome::Done,
                Err(error) => retry(&error.to_string()),
            });
        }
        outcomes
    }
}
