//! A consumer that never gives up: connect, declare, consume until the first error or the end, wait, and again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::intake::Intake;
use super::work::{Finished, Work};
use super::{Broker, Counted};
use crate::backoff::Backoff;
use crate::bus::{Handler, Subscription};

/// Between two attempts to connect.
const RECONNECT: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };
/// A session that lasted so long was none of a row of failures.
const STABLE: Duration = Duration::from_secs(10);

/// One subscription and the work in its hands. Work outlives the session that brought it: it is finished while the
/// next session begins, and what the broker then delivers again is for the inbox to recognise.
pub(super) struct Consumer {
    broker: Arc<Broker>,
    subscription: Subscription,
    handler: Arc<dyn Handler>,
    working: FuturesUnordered<Pin<Box<dyn Future<Output = Finished> + Send>>>,
    /// Events in the hands of the handler.
    in_flight: usize,
}

/// Why a session ended.
enum End {
    Stopped,
    Lost(String),
}

impl Consumer {
    pub(super) fn new(broker: Arc<Broker>, subscription: Subscription, handler: Arc<dyn Handler>) -> Self {
        Self { broker, subscription, handler, working: FuturesUnordered::new(), in_flight: 0 }
    }

    /// Runs until `stop` is cancelled, then finishes the work in its hands.
    pub(super) async fn run(mut self, stop: &CancellationToken) {
        let queue = self.subscription.queue;
        let mut failures = 0;
        while !stop.is_cancelled() {
            let reason = match self.begin_session(stop).await {
                None => break,
                Some(Err(reason)) => reason,
                Some(Ok(intake)) => {
                    tracing::info!(queue, "consumer is connected");
                    let began = Instant::now();
                    match self.run_session(intake, stop).await {
                        End::Stopped => break,
                        End::Lost(reason) => {
                            failures = if began.elapsed() < STABLE { failures } else { 0 };
                            reason
                        }
                    }
                }
            };
            failures += 1;
            tracing::warn!(queue, reason, failures, "consumer is not connected: it tries again");
            let rest = stop.run_until_cancelled(sleep(RECONNECT.delay(failures)));
            self.work_until(rest).await;
        }
        self.finish_work().await;
    }

    /// `None` when it was stopped before.
    async fn begin_session(&mut self, stop: &CancellationToken) -> Option<Result<Intake, String>> {
        let (broker, subscription) = (self.broker.clone(), self.subscription);
        let begin = async { stop.run_until_cancelled(Intake::begin(&broker, &subscription)).await };
        self.work_until(begin).await
    }

    async fn run_session(&mut self, mut intake: Intake, stop: &CancellationToken) -> End {
        let broker = self.broker.clone();
        let connected = Counted::new(&broker.consumers.connected);
        let end = loop {
            let now = Instant::now();
            let misfits_from = intake.misfits_from(now);
            if misfits_from.is_some_and(|moment| moment <= now) {
                match self.work_until(stop.run_until_cancelled(intake.resize())).await {
                    Some(Ok(())) => {}
                    Some(Err(reason)) => break End::Lost(reason),
                    None => break End::Stopped,
                }
            }
            self.hand_over(&mut intake, stop);
            tokio::select! {
                // In this order: after the stop nothing more is taken in, and finished work goes before new work.
                biased;
                () = stop.cancelled() => break End::Stopped,
                Some(finished) = self.working.next() => {
                    let is_of_this_session = Arc::ptr_eq(&finished.session, intake.session());
                    if let Err(reason) = self.finish(finished).await && is_of_this_session {
                        break End::Lost(reason);
                    }
                }
                received = intake.receive() => if let Err(reason) = received {
                    break End::Lost(reason);
                },
                () = sleep_until(misfits_from.unwrap_or(now)), if misfits_from.is_some_and(|moment| moment > now) => {}
            }
        };
        drop(connected);
        if matches!(end, End::Stopped) {
            intake.cancel().await;
            self.finish_work().await;
        }
        self.work_until(intake.session().end()).await;
        end
    }

    /// Hands over to the handler what there is and it may have.
    fn hand_over(&mut self, intake: &mut Intake, stop: &CancellationToken) {
        let max_in_flight = self.subscription.max_in_flight.max(1);
        while self.in_flight < max_in_flight && !intake.is_empty() {
            let room = self.subscription.max_batch.max(1).min(max_in_flight - self.in_flight);
            let events = intake.take(room);
            self.in_flight += events.len();
            let work = Work {
                broker: self.broker.clone(),
                queue: self.subscription.queue,
                session: intake.session().clone(),
                events,
            };
            self.working.push(Box::pin(work.handle(self.handler.clone(), stop.clone())));
        }
    }

    /// Acknowledges what is finished. Acknowledgements of a session that is over fail, which its successor ignores.
    async fn finish(&mut self, finished: Finished) -> Result<(), String> {
        self.in_flight -= finished.events;
        let acknowledged = finished.session.settle(&finished.settled).await;
        let result = finished.error.map_or(acknowledged, Err);
        if let Err(reason) = &result {
            tracing::warn!(queue = self.subscription.queue, reason, "deliveries will come again");
        }
        result
    }

    /// Waits for something else without neglecting the work in hand.
    async fn work_until<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                result = &mut other => return result,
                // Its failure is logged. A session that is not over yet ends with what it is asked next.
                Some(finished) = self.working.next() => drop(self.finish(finished).await),
            }
        }
    }

    async fn finish_work(&mut self) {
        while let Some(finished) = self.working.next().await {
            // The last of a session that ends anyway: its failure is logged and has no other consequence.
            drop(self.finish(finished).await);
        }
    }
}
