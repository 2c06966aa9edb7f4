//! Events in the hands of a handler, until every one of them is settled.

use std::sync::Arc;
use std::time::Duration;

use assay_platform::runtime::now;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Broker;
use super::intake::Taken;
use super::session::Session;
use super::settle::{Handled, settle};
use crate::backoff::Backoff;
use crate::bus::in_hand::Handling;
use crate::bus::{Handler, Outcome, handling};
use crate::metrics;

/// Between two attempts to store failed deliveries elsewhere.
const STORE: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };

/// Events that the handler gets together, of one message or of several.
pub(super) struct Work {
    pub(super) broker: Arc<Broker>,
    pub(super) queue: &'static str,
    pub(super) session: Arc<Session>,
    pub(super) events: Vec<Taken>,
}

/// Events that are handled and whose failures are stored.
pub(super) struct Finished {
    pub(super) session: Arc<Session>,
    /// How many the handler had.
    pub(super) events: usize,
    /// The tag of its message for each event that is settled.
    pub(super) settled: Vec<u64>,
    pub(super) error: Option<String>,
}

impl Work {
    /// Has the events handled, and stores their failures for as long as the session lives.
    pub(super) async fn handle(self, handler: Arc<dyn Handler>, stop: CancellationToken) -> Finished {
        let count = self.events.len();
        let in_hand = self.broker.in_hand.hand_over(self.queue);
        let mut unsettled = handle(&*handler, self.events, in_hand, self.broker.retries.max_attempts).await;
        let mut tags = Vec::with_capacity(count);
        let mut error = None;
        for failures in 1.. {
            let settled = settle(&self.broker, self.queue, unsettled, now()).await;
            unsettled = settled.left;
            tags.extend(settled.tags);
            error = settled.error;
            // Held back rather than given back: each redelivery brings a message closer to its delivery limit.
            if unsettled.is_empty() || stop.is_cancelled() || !self.session.is_alive() {
                break;
            }
            tracing::warn!(
                queue = self.queue,
                error,
                failures,
                "failed deliveries wait for the broker to store them"
            );
            stop.run_until_cancelled(sleep(STORE.delay(failures))).await;
        }
        Finished { session: self.session, events: count, settled: tags, error }
    }
}

/// Each event with its outcome. What cannot be read is rejected without the handler.
async fn handle(
    handler: &dyn Handler,
    events: Vec<Taken>,
    in_hand: Handling,
    max_attempts: u32,
) -> Vec<Handled> {
    let mut handled = Vec::with_capacity(events.len());
    let (mut readable, mut deliveries) = (Vec::new(), Vec::new());
    for Taken { tag, original, event, .. } in events {
        match event {
            Ok(delivery) => {
                deliveries.push(delivery);
                readable.push((tag, original));
            }
            Err(error) => {
                metrics::unreadable(in_hand.queue());
                handled.push(Handled {
                    tag,
                    original,
                    outcome: Outcome::Reject { reason: error.to_string() },
                });
            }
        }
    }
    if !deliveries.is_empty() {
        let outcomes = handling::handle(handler, &mut deliveries, in_hand, max_attempts).await;
        let outcomes = readable.into_iter().zip(outcomes);
        handled.extend(outcomes.map(|((tag, original), outcome)| Handled { tag, original, outcome }));
    }
    handled
}
