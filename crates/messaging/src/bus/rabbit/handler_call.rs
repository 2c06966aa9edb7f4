//! One call of a handler, from dispatch until its failed deliveries are stored.

use std::sync::Arc;
use std::time::Duration;

use assay_platform::runtime::now;
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::broker::Broker;
use super::delivery_buffer::BufferedEvent;
use super::failed_deliveries::{HandledEvent, store_failures};
use super::session::Session;
use crate::backoff::backoff;
use crate::bus::delivery::{Handler, Outcome};
use crate::bus::in_flight::InFlightGuard;
use crate::bus::invoke;
use crate::metrics;

/// Between two attempts to store failed deliveries.
const STORE_RETRY: ExponentialBuilder = backoff(Duration::from_millis(250), Duration::from_secs(5));

/// Events that the handler gets together, of one message or of several.
pub(super) struct HandlerCall {
    pub(super) broker: Arc<Broker>,
    pub(super) queue: &'static str,
    pub(super) session: Arc<Session>,
    pub(super) events: Vec<BufferedEvent>,
}

/// A call that returned and whose failures are stored.
pub(super) struct FinishedCall {
    pub(super) session: Arc<Session>,
    /// All events of the call.
    pub(super) events: usize,
    /// The tag of its message for each completed event.
    pub(super) completed: Vec<u64>,
    pub(super) error: Option<String>,
}

impl HandlerCall {
    /// Calls the handler, then stores failed deliveries for as long as the session lives.
    pub(super) async fn run(self, handler: Arc<dyn Handler>, stop: CancellationToken) -> FinishedCall {
        let events = self.events.len();
        let in_flight = self.broker.in_flight.begin(self.queue);
        let max_attempts = self.broker.retries.max_attempts;
        let mut handled = invoke_readable(&*handler, self.events, in_flight, max_attempts).await;
        let mut completed = Vec::with_capacity(events);
        let mut error = None;
        for (failures, delay) in (1..).zip(STORE_RETRY.build()) {
            let stored = store_failures(&self.broker, self.queue, handled, now()).await;
            handled = stored.not_stored;
            completed.extend(stored.completed);
            error = stored.error;
            // Retried here and not requeued: each redelivery brings a message closer to its delivery limit.
            if handled.is_empty() || stop.is_cancelled() || !self.session.is_alive() {
                break;
            }
            tracing::warn!(
                queue = self.queue,
                error,
                failures,
                "failed deliveries wait for the broker to store them"
            );
            stop.run_until_cancelled(sleep(delay)).await;
        }
        FinishedCall { session: self.session, events, completed, error }
    }
}

/// Each event with its outcome. Unreadable ones are rejected without the handler.
async fn invoke_readable(
    handler: &dyn Handler,
    events: Vec<BufferedEvent>,
    in_flight: InFlightGuard,
    max_attempts: u32,
) -> Vec<HandledEvent> {
    let mut handled = Vec::with_capacity(events.len());
    let (mut readable, mut deliveries) = (Vec::new(), Vec::new());
    for BufferedEvent { tag, original, event, .. } in events {
        match event {
            Ok(delivery) => {
                deliveries.push(delivery);
                readable.push((tag, original));
            }
            Err(error) => {
                metrics::count_dead(in_flight.queue());
                let outcome = Outcome::Reject { reason: error.to_string() };
                handled.push(HandledEvent { tag, original, outcome });
            }
        }
    }
    if !deliveries.is_empty() {
        let outcomes = invoke::invoke(handler, &mut deliveries, in_flight, max_attempts).await;
        let outcomes = readable.into_iter().zip(outcomes);
        handled.extend(outcomes.map(|((tag, original), outcome)| HandledEvent { tag, original, outcome }));
    }
    handled
}
