//! One call of a handler, from dispatch until its events are settled.

use std::sync::Arc;
use std::time::Duration;

use assay_platform::runtime::now;
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::broker::Broker;
use super::delivery_buffer::BufferedEvent;
use super::failed_deliveries::{DeliveryResult, UnsettledEvent, store_failures};
use super::session::Session;
use crate::backoff::backoff;
use crate::bus::delivery::{Handler, Outcome};
use crate::bus::in_flight::InFlightGuard;
use crate::bus::invoke;
use crate::metrics;

/// Delays between attempts to store events that are not done.
const SETTLE_BACKOFF: ExponentialBuilder = backoff(Duration::from_millis(250), Duration::from_secs(5));

/// Events that the handler gets together, of one message or of several.
pub(super) struct HandlerCall {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) events: Vec<BufferedEvent>,
    pub(super) settlement: Settlement,
}

/// Settles events: stores those that are not done in another queue. Tries again until the session or the process ends.
pub(super) struct Settlement {
    pub(super) broker: Arc<Broker>,
    pub(super) queue: &'static str,
    pub(super) session: Arc<Session>,
    pub(super) stop: CancellationToken,
}

/// A handler call, or a settlement without one, that has ended.
pub(super) struct FinishedCall {
    pub(super) session: Arc<Session>,
    /// Number and bytes of the events that were in the handler call.
    pub(super) in_flight: InFlightEvents,
    /// For each settled event, the delivery tag of its message.
    pub(super) settled: Vec<u64>,
    pub(super) error: Option<String>,
}

/// Number and bytes of events in handler calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InFlightEvents {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

impl InFlightEvents {
    pub(super) fn of(events: &[BufferedEvent]) -> Self {
        Self { events: events.len(), bytes: events.iter().map(BufferedEvent::bytes).sum() }
    }
}

impl HandlerCall {
    /// Calls the handler, then settles its events.
    pub(super) async fn run(self) -> FinishedCall {
        let in_flight = InFlightEvents::of(&self.events);
        let Settlement { broker, queue, .. } = &self.settlement;
        let guard = broker.in_flight.begin(queue);
        let max_attempts = broker.retries.max_attempts;
        let handled = invoke_readable(&*self.handler, self.events, guard, max_attempts).await;
        FinishedCall { in_flight, ..self.settlement.settle(handled).await }
    }
}

impl Settlement {
    pub(super) async fn settle(self, mut events: Vec<UnsettledEvent>) -> FinishedCall {
        let mut settled = Vec::with_capacity(events.len());
        let mut error = None;
        // Tried again here and not requeued: each redelivery brings a message closer to its delivery limit.
        for (failures, delay) in (1..).zip(SETTLE_BACKOFF.build()) {
            let stored = store_failures(&self.broker, self.queue, events, now()).await;
            events = stored.not_stored;
            settled.extend(stored.settled);
            error = stored.error;
            if events.is_empty() || self.stop.is_cancelled() || !self.session.is_alive() {
                break;
            }
            tracing::warn!(
                queue = self.queue,
                error,
                failures,
                "failed deliveries wait for the broker to store them"
            );
            self.stop.run_until_cancelled(sleep(delay)).await;
        }
        FinishedCall { session: self.session, in_flight: InFlightEvents::default(), settled, error }
    }
}

/// Returns each event with its outcome. Rejects unreadable events without calling the handler.
async fn invoke_readable(
    handler: &dyn Handler,
    events: Vec<BufferedEvent>,
    in_flight: InFlightGuard,
    max_attempts: u32,
) -> Vec<UnsettledEvent> {
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
                let result = DeliveryResult::Handled(Outcome::Reject { reason: error.to_string() });
                handled.push(UnsettledEvent { tag, original, result });
            }
        }
    }
    if !deliveries.is_empty() {
        let outcomes = invoke::invoke(handler, &mut deliveries, in_flight, max_attempts).await;
        handled.extend(readable.into_iter().zip(outcomes).map(|((tag, original), outcome)| {
            let result = DeliveryResult::Handled(outcome);
            UnsettledEvent { tag, original, result }
        }));
    }
    handled
}
