//! A consumer that never gives up: connect, declare, consume until the first error or the end, wait, and again.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assay_platform::runtime::now;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::message::attempt;
use super::session::Session;
use super::settle::{Handled, settle};
use super::{Broker, Counted};
use crate::backoff::Backoff;
use crate::bus::in_hand::Handling;
use crate::bus::{Delivery, Handler, Outcome, Subscription, handling};

/// Between two attempts to connect.
const RECONNECT: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };
/// A session that lasted so long was none of a row of failures.
const STABLE: Duration = Duration::from_secs(10);
/// Between two attempts to store failed deliveries elsewhere.
const STORE: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(5) };

/// One subscription and the work in its hands. Work outlives the session that brought it: it is finished while the
/// next session begins, and what the broker then delivers again is for the inbox to recognise.
pub(super) struct Consumer {
    broker: Arc<Broker>,
    subscription: Subscription,
    handler: Arc<dyn Handler>,
    working: FuturesUnordered<Work>,
    in_flight: usize,
}

type Work = Pin<Box<dyn Future<Output = Finished> + Send>>;

/// A batch that is handled and whose failures are stored.
struct Finished {
    session: Arc<Session>,
    deliveries: usize,
    tags: BTreeSet<u64>,
    error: Option<String>,
}

/// Deliveries that the handler gets together.
struct Batch {
    broker: Arc<Broker>,
    queue: &'static str,
    session: Arc<Session>,
    deliveries: Vec<lapin::message::Delivery>,
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
                Some(Ok((session, deliveries))) => {
                    tracing::info!(queue, "consumer is connected");
                    let began = Instant::now();
                    match self.run_session(&session, deliveries, stop).await {
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
    async fn begin_session(
        &mut self,
        stop: &CancellationToken,
    ) -> Option<Result<(Arc<Session>, lapin::Consumer), String>> {
        let (broker, subscription) = (self.broker.clone(), self.subscription);
        let begin = async { stop.run_until_cancelled(Session::begin(&broker, &subscription)).await };
        let begun = self.work_until(begin).await?;
        Some(begun.map(|(session, deliveries)| (Arc::new(session), deliveries)))
    }

    async fn run_session(
        &mut self,
        session: &Arc<Session>,
        mut deliveries: lapin::Consumer,
        stop: &CancellationToken,
    ) -> End {
        let broker = self.broker.clone();
        let connected = Counted::new(&broker.consumers.connected);
        let max_in_flight = self.subscription.max_in_flight.max(1);
        let end = loop {
            tokio::select! {
                // In this order: after the stop nothing more is taken in, and finished work goes before new work.
                biased;
                () = stop.cancelled() => break End::Stopped,
                Some(finished) = self.working.next() => {
                    let is_of_this_session = Arc::ptr_eq(&finished.session, session);
                    if let Err(reason) = self.finish(finished).await && is_of_this_session {
                        break End::Lost(reason);
                    }
                }
                delivery = deliveries.next(), if self.in_flight < max_in_flight => match delivery {
                    Some(Ok(delivery)) => self.take_in(session, delivery, &mut deliveries, stop),
                    Some(Err(error)) => break End::Lost(error.to_string()),
                    None => break End::Lost("broker has cancelled the consumer".to_owned()),
                },
            }
        };
        drop(connected);
        if matches!(end, End::Stopped) {
            session.cancel().await;
            self.finish_work().await;
        }
        self.work_until(session.end()).await;
        end
    }

    /// Hands over `first` and what is there beside it.
    fn take_in(
        &mut self,
        session: &Arc<Session>,
        first: lapin::message::Delivery,
        deliveries: &mut lapin::Consumer,
        stop: &CancellationToken,
    ) {
        let max_in_flight = self.subscription.max_in_flight.max(1);
        let room = self.subscription.max_batch.max(1).min(max_in_flight - self.in_flight);
        let mut batch = vec![first];
        while batch.len() < room
            && let Some(Some(Ok(delivery))) = deliveries.next().now_or_never()
        {
            batch.push(delivery);
        }
        for delivery in &batch {
            session.hand_over(delivery.delivery_tag);
        }
        self.in_flight += batch.len();
        let work = Batch {
            broker: self.broker.clone(),
            queue: self.subscription.queue,
            session: session.clone(),
            deliveries: batch,
        };
        self.working.push(Box::pin(work.handle(self.handler.clone(), stop.clone())));
    }

    /// Acknowledges a finished batch. Acknowledgements of a session that is over fail, which its successor ignores.
    async fn finish(&mut self, finished: Finished) -> Result<(), String> {
        self.in_flight -= finished.deliveries;
        let acknowledged = finished.session.acknowledge(finished.tags).await;
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
                // Of a session that is over: its failure is logged and has no other consequence.
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

impl Batch {
    /// Has the batch handled, and stores its failures for as long as the session lives.
    async fn handle(self, handler: Arc<dyn Handler>, stop: CancellationToken) -> Finished {
        let count = self.deliveries.len();
        let in_hand = self.broker.in_hand.hand_over(self.queue);
        let mut unsettled = handle(&*handler, self.deliveries, in_hand).await;
        let mut tags = BTreeSet::new();
        let mut error = None;
        for failures in 1.. {
            let settled = settle(&self.broker, self.queue, &unsettled, now()).await;
            unsettled.retain(|handled| !settled.tags.contains(&handled.delivery.delivery_tag));
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
        Finished { session: self.session, deliveries: count, tags, error }
    }
}

/// Each delivery with its outcome. What cannot be read is rejected without the handler.
async fn handle(
    handler: &dyn Handler,
    deliveries: Vec<lapin::message::Delivery>,
    in_hand: Handling,
) -> Vec<Handled> {
    let mut handled = Vec::with_capacity(deliveries.len());
    let (mut readable, mut parsed) = (Vec::new(), Vec::new());
    for delivery in deliveries {
        let attempt = attempt(&delivery.properties);
        match Delivery::parse(&delivery.data, attempt) {
            Ok(event) => {
                parsed.push(event);
                readable.push((delivery, attempt));
            }
            Err(error) => {
                let outcome = Outcome::Reject { reason: error.to_string() };
                handled.push(Handled { delivery, attempt, outcome });
            }
        }
    }
    if !parsed.is_empty() {
        let outcomes = handling::handle(handler, &parsed, in_hand).await;
        let outcomes = readable.into_iter().zip(outcomes);
        handled.extend(outcomes.map(|((delivery, attempt), outcome)| Handled { delivery, attempt, outcome }));
    }
    handled
}
