//! A consumer that reconnects forever: connect, declare, consume until the first error or the stop, back off, repeat.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::broker::{Broker, CountGuard};
use super::delivery_buffer::{BufferedEvent, DeliveryBuffer, IsolatedDelivery};
use super::handler_call::{FinishedCall, HandlerCall, InFlightEvents, Settlement};
use crate::backoff::backoff;
use crate::bus::delivery::{Handler, Subscription};
use crate::bus::{MAX_IN_FLIGHT_BYTES, cut_short};

/// Delays between attempts to connect.
const RECONNECT_BACKOFF: ExponentialBuilder = backoff(Duration::from_millis(250), Duration::from_secs(5));
/// Interval between checks of an isolation queue that was empty.
const ISOLATION_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// A session that lasted at least this long resets the back-off.
const STABLE_SESSION: Duration = Duration::from_secs(10);

/// One subscription and its handler calls. A call outlives the session that delivered its events: it finishes while the
/// next session starts, and the inbox recognises the redelivered events.
pub(super) struct Consumer {
    broker: Arc<Broker>,
    subscription: Subscription,
    handler: Arc<dyn Handler>,
    /// Handler calls, and settlements of events that were cut short.
    calls: FuturesUnordered<Pin<Box<dyn Future<Output = FinishedCall> + Send>>>,
    /// Events in handler calls.
    in_flight: InFlightEvents,
    isolation: IsolationQueue,
}

/// State of the isolation queue: events that are handled one at a time.
#[derive(Clone, Copy)]
struct IsolationQueue {
    /// Whether the queue may hold events: then no other event is dispatched, once the queue is served.
    may_have_events: bool,
    /// When an empty queue is checked again: another process may have filled it.
    check_at: Instant,
    /// When its events may be handled, see [`cut_short::ISOLATION_START_DELAY`].
    served_from: Instant,
}

impl IsolationQueue {
    fn of_new_session() -> Self {
        let served_from = Instant::now() + cut_short::ISOLATION_START_DELAY;
        Self { may_have_events: false, check_at: served_from, served_from }
    }

    fn is_served(&self) -> bool {
        self.may_have_events && self.served_from <= Instant::now()
    }

    /// When it is to be checked or served; `None` while it is served.
    fn wake_at(&self) -> Option<Instant> {
        let at = if self.may_have_events { self.served_from } else { self.check_at };
        (!self.is_served()).then_some(at)
    }
}

enum SessionEnd {
    Stopped,
    Lost(String),
}

impl Consumer {
    pub(super) fn new(broker: Arc<Broker>, subscription: Subscription, handler: Arc<dyn Handler>) -> Self {
        Self {
            broker,
            subscription,
            handler,
            calls: FuturesUnordered::new(),
            in_flight: InFlightEvents::default(),
            isolation: IsolationQueue::of_new_session(),
        }
    }

    /// Runs until `stop` is cancelled, then waits for the running handler calls.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        let queue = self.subscription.queue;
        let (mut failures, mut delays) = (0, RECONNECT_BACKOFF.build());
        while !stop.is_cancelled() {
            let reason = match self.connect(stop).await {
                None => break,
                Some(Err(reason)) => reason,
                Some(Ok(buffer)) => {
                    tracing::info!(queue, "consumer is connected");
                    self.isolation = IsolationQueue::of_new_session();
                    let started = Instant::now();
                    match self.run_session(buffer, stop).await {
                        SessionEnd::Stopped => break,
                        SessionEnd::Lost(reason) => {
                            if started.elapsed() >= STABLE_SESSION {
                                (failures, delays) = (0, RECONNECT_BACKOFF.build());
                            }
                            reason
                        }
                    }
                }
            };
            failures += 1;
            tracing::warn!(queue, reason, failures, "consumer is not connected: it tries again");
            let pause = stop.run_until_cancelled(sleep(delays.next().unwrap_or_default()));
            self.finish_calls_until(pause).await;
        }
        self.finish_all_calls().await;
    }

    /// `None` when `stop` was cancelled first.
    async fn connect(&mut self, stop: &CancellationToken) -> Option<Result<DeliveryBuffer, String>> {
        let (broker, subscription) = (self.broker.clone(), self.subscription);
        let connected =
            async { stop.run_until_cancelled(DeliveryBuffer::connect(&broker, &subscription)).await };
        self.finish_calls_until(connected).await
    }

    async fn run_session(&mut self, mut buffer: DeliveryBuffer, stop: &CancellationToken) -> SessionEnd {
        let broker = self.broker.clone();
        let connected = CountGuard::new(&broker.consumers.connected);
        let end = loop {
            let now = Instant::now();
            let resize_due_at = buffer.resize_due_at(now);
            if resize_due_at.is_some_and(|due_at| due_at <= now) {
                match self.finish_calls_until(stop.run_until_cancelled(buffer.resize())).await {
                    Some(Ok(())) => {}
                    Some(Err(reason)) => break SessionEnd::Lost(reason),
                    None => break SessionEnd::Stopped,
                }
            }
            match self.serve_isolation_queue(&mut buffer, stop).await {
                Some(Ok(())) => {}
                Some(Err(reason)) => break SessionEnd::Lost(reason),
                None => break SessionEnd::Stopped,
            }
            self.dispatch(&mut buffer, stop);
            // A resize that was due was made above.
            let resize_at = resize_due_at.filter(|due_at| *due_at > now);
            let wake_at = resize_at.into_iter().chain(self.isolation.wake_at()).min();
            tokio::select! {
                // In this order: after the stop nothing more is received, and finished calls go before new ones.
                biased;
                () = stop.cancelled() => break SessionEnd::Stopped,
                Some(finished) = self.calls.next() => {
                    // An error of an earlier session does not end this one.
                    let is_of_this_session = Arc::ptr_eq(&finished.session, buffer.session());
                    if let Err(reason) = self.finish_call(finished).await && is_of_this_session {
                        break SessionEnd::Lost(reason);
                    }
                }
                received = buffer.receive() => if let Err(reason) = received {
                    break SessionEnd::Lost(reason);
                },
                () = sleep_until(wake_at.unwrap_or(now)), if wake_at.is_some() => {}
            }
        };
        drop(connected);
        if matches!(end, SessionEnd::Stopped) {
            buffer.cancel().await;
            self.finish_all_calls().await;
        }
        self.finish_calls_until(buffer.session().close()).await;
        end
    }

    /// Moves events to be isolated to the isolation queue, and calls the handler with the other buffered events, up to
    /// `max_in_flight`; with none while the isolation queue is served.
    fn dispatch(&mut self, buffer: &mut DeliveryBuffer, stop: &CancellationToken) {
        let to_isolate = buffer.take_events_to_isolate();
        if !to_isolate.is_empty() {
            self.isolation.may_have_events = true;
            self.calls.push(Box::pin(self.settlement(buffer, stop).settle(to_isolate)));
        }
        let max_in_flight = self.subscription.max_in_flight.max(1);
        while !self.isolation.is_served()
            && self.in_flight.events < max_in_flight
            && self.in_flight.bytes < MAX_IN_FLIGHT_BYTES
            && !buffer.is_empty()
        {
            let room = self.subscription.max_batch.max(1).min(max_in_flight - self.in_flight.events);
            let events = buffer.take(room);
            self.start_call(events, buffer, stop);
        }
    }

    fn start_call(&mut self, events: Vec<BufferedEvent>, buffer: &DeliveryBuffer, stop: &CancellationToken) {
        let added = InFlightEvents::of(&events);
        self.in_flight.events += added.events;
        self.in_flight.bytes += added.bytes;
        let call =
            HandlerCall { handler: self.handler.clone(), events, settlement: self.settlement(buffer, stop) };
        self.calls.push(Box::pin(call.run()));
    }

    fn settlement(&self, buffer: &DeliveryBuffer, stop: &CancellationToken) -> Settlement {
        Settlement {
            broker: self.broker.clone(),
            queue: self.subscription.queue,
            session: buffer.session().clone(),
            stop: stop.clone(),
        }
    }

    /// Checks the isolation queue when that is due. While it is served, calls the handler with its next event as soon as no
    /// other call is running. `None` when `stop` was cancelled first.
    async fn serve_isolation_queue(
        &mut self,
        buffer: &mut DeliveryBuffer,
        stop: &CancellationToken,
    ) -> Option<Result<(), String>> {
        if !self.isolation.may_have_events && self.isolation.check_at <= Instant::now() {
            let session = buffer.session().clone();
            let counted = stop.run_until_cancelled(async move { session.count_isolated().await });
            match self.finish_calls_until(counted).await? {
                Ok(waiting) => self.isolation.may_have_events = waiting > 0,
                Err(reason) => return Some(Err(reason)),
            }
            self.isolation.check_at = Instant::now() + ISOLATION_CHECK_INTERVAL;
        }
        if self.isolation.is_served() && self.calls.is_empty() {
            match stop.run_until_cancelled(buffer.take_isolated()).await? {
                Ok(IsolatedDelivery::None) => self.isolation.may_have_events = false,
                Ok(IsolatedDelivery::Handle(events)) => self.start_call(events, buffer, stop),
                Ok(IsolatedDelivery::HandleLater(events)) => {
                    self.calls.push(Box::pin(self.settlement(buffer, stop).settle(events)));
                }
                Err(reason) => return Some(Err(reason)),
            }
        }
        Some(Ok(()))
    }

    /// Acks settled events. Fails when not all events of the call were settled and acked.
    async fn finish_call(&mut self, finished: FinishedCall) -> Result<(), String> {
        self.in_flight.events -= finished.in_flight.events;
        self.in_flight.bytes -= finished.in_flight.bytes;
        let acknowledged = finished.session.ack(&finished.settled).await;
        let result = finished.error.map_or(acknowledged, Err);
        if let Err(reason) = &result {
            tracing::warn!(
                queue = self.subscription.queue,
                reason,
                "unacknowledged deliveries will be redelivered"
            );
        }
        result
    }

    /// Waits for `other` and meanwhile finishes handler calls.
    async fn finish_calls_until<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                result = &mut other => return result,
                // The error is logged; the session fails again at its next operation.
                Some(finished) = self.calls.next() => drop(self.finish_call(finished).await),
            }
        }
    }

    async fn finish_all_calls(&mut self) {
        while let Some(finished) = self.calls.next().await {
            // The error is logged; the session ends anyway.
            drop(self.finish_call(finished).await);
        }
    }
}
