//! The bus of a single process. It stores nothing: an event counts as published when its consumers have handled it.
//! Until then the producer's outbox keeps it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use assay_platform::runtime::LockExt as _;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::delivery::{Delivery, Handler, Outcome, Subscription};
use super::errors::PublishError;
use super::in_flight::{InFlight, InFlightGuard};
use super::{MAX_BATCH_BYTES, invoke};
use crate::envelope::OutgoingEvent;

type Queues = Arc<Mutex<HashMap<&'static str, Queue>>>;

/// Queues in memory.
pub(super) struct LocalBus {
    queues: Queues,
    next_consumer_id: AtomicUsize,
    max_attempts: u32,
    in_flight: InFlight,
}

/// The consumers that share the events of some topics. Like a broker's queue it outlives its consumers: while it has none,
/// events of its topics cannot be published.
struct Queue {
    topics: Vec<&'static str>,
    /// The id of each consumer, and the channel to it.
    consumers: Vec<(usize, mpsc::Sender<PendingDelivery>)>,
    round_robin: usize,
}

/// A delivery and the channel for its outcome. A dropped channel means that the consumer stopped before handling it.
struct PendingDelivery {
    delivery: Delivery,
    outcome: oneshot::Sender<Outcome>,
}

impl LocalBus {
    pub(super) fn new(max_attempts: u32, in_flight: InFlight) -> Self {
        Self { queues: Arc::default(), next_consumer_id: AtomicUsize::new(0), max_attempts, in_flight }
    }

    pub(super) async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        join_all(events.iter().map(|event| self.publish_one(event))).await
    }

    async fn publish_one(&self, event: &OutgoingEvent) -> Result<(), PublishError> {
        let consumers = self.consumers_of(&event.topic)?;
        if consumers.is_empty() && event.needs_consumer {
            return Err(PublishError::Unroutable { topic: event.topic.clone() });
        }
        let outcomes = join_all(consumers.iter().map(|consumer| deliver(consumer, event))).await;
        // All queues get the event, even if one of them fails.
        outcomes.into_iter().try_for_each(|outcome| self.publish_result(outcome?, event.attempt))
    }

    /// One consumer of each queue of the topic. Fails when one of these queues has none.
    fn consumers_of(&self, topic: &str) -> Result<Vec<mpsc::Sender<PendingDelivery>>, PublishError> {
        let mut queues = self.queues.locked();
        let subscribed = queues.values_mut().filter(|queue| queue.topics.contains(&topic));
        subscribed.map(|queue| queue.next_consumer().ok_or_else(consumer_stopped)).collect()
    }

    fn publish_result(&self, outcome: Outcome, attempt: u32) -> Result<(), PublishError> {
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Retry { reason } if attempt >= self.max_attempts => {
                let reason = format!("attempt {attempt} of {}: {reason}", self.max_attempts);
                Err(PublishError::Rejected { reason })
            }
            Outcome::Retry { reason } | Outcome::Postpone { reason } => Err(PublishError::Retry { reason }),
            Outcome::Reject { reason } => Err(PublishError::Rejected { reason }),
        }
    }

    pub(super) async fn consume(
        &self,
        subscription: Subscription,
        handler: Arc<dyn Handler>,
        stop: CancellationToken,
    ) {
        let max_in_flight = subscription.max_in_flight.max(1);
        let (sender, mut pending) = mpsc::channel(max_in_flight);
        let _registration = self.register(&subscription, sender);
        let mut running = FuturesUnordered::new();
        let mut deliveries_in_flight = 0;
        loop {
            let room = subscription.max_batch.max(1).min(max_in_flight - deliveries_in_flight);
            let mut received_deliveries = Vec::new();
            tokio::select! {
                // In this order: after the stop nothing more is received, and finished batches go before new ones.
                biased;
                () = stop.cancelled() => break,
                Some(handled) = running.next() => deliveries_in_flight -= handled,
                received = pending.recv_many(&mut received_deliveries, room), if room > 0 => {
                    deliveries_in_flight += received;
                    for batch in split_by_bytes(received_deliveries) {
                        let guard = self.in_flight.begin(subscription.queue);
                        running.push(handle_batch(&*handler, batch, guard, self.max_attempts));
                    }
                }
            }
        }
        // Deliveries that were not dispatched fail at their producers at once.
        drop(pending);
        while running.next().await.is_some() {}
    }

    fn register(&self, subscription: &Subscription, sender: mpsc::Sender<PendingDelivery>) -> Registration {
        let consumer_id = self.next_consumer_id.fetch_add(1, Ordering::Relaxed);
        let mut queues = self.queues.locked();
        let queue = queues.entry(subscription.queue).or_insert_with(|| Queue {
            topics: subscription.topics.iter().map(|topic| topic.name).collect(),
            consumers: Vec::new(),
            round_robin: 0,
        });
        queue.consumers.push((consumer_id, sender));
        Registration { queues: self.queues.clone(), queue: subscription.queue, consumer_id }
    }
}

impl Queue {
    fn next_consumer(&mut self) -> Option<mpsc::Sender<PendingDelivery>> {
        self.round_robin = self.round_robin.wrapping_add(1);
        let index = self.round_robin.checked_rem(self.consumers.len())?;
        self.consumers.get(index).map(|(_, sender)| sender.clone())
    }
}

/// A consumer's entry in its queue, removed on drop.
struct Registration {
    queues: Queues,
    queue: &'static str,
    consumer_id: usize,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut queues = self.queues.locked();
        let Some(queue) = queues.get_mut(self.queue) else { return };
        queue.consumers.retain(|(id, _)| *id != self.consumer_id);
    }
}

async fn deliver(
    consumer: &mpsc::Sender<PendingDelivery>,
    event: &OutgoingEvent,
) -> Result<Outcome, PublishError> {
    let mut delivery = Delivery::parse(event.payload.as_bytes(), event.attempt)
        .map_err(|error| PublishError::Rejected { reason: error.to_string() })?;
    delivery.times_cut_short = event.times_cut_short;
    let (outcome, handled) = oneshot::channel();
    consumer.send(PendingDelivery { delivery, outcome }).await.map_err(|_| consumer_stopped())?;
    handled.await.map_err(|_| consumer_stopped())
}

fn consumer_stopped() -> PublishError {
    PublishError::Unavailable("the consumer has stopped".to_owned())
}

/// Batches of at most [`MAX_BATCH_BYTES`], unless a single delivery is larger.
fn split_by_bytes(deliveries: Vec<PendingDelivery>) -> Vec<Vec<PendingDelivery>> {
    let mut batches: Vec<Vec<PendingDelivery>> = Vec::new();
    let mut total = 0;
    for pending in deliveries {
        let bytes = pending.delivery.data_bytes();
        total += bytes;
        match batches.last_mut() {
            Some(batch) if total <= MAX_BATCH_BYTES => batch.push(pending),
            _ => {
                total = bytes;
                batches.push(vec![pending]);
            }
        }
    }
    batches
}

/// Handles a batch; returns its number of deliveries.
async fn handle_batch(
    handler: &dyn Handler,
    batch: Vec<PendingDelivery>,
    guard: InFlightGuard,
    max_attempts: u32,
) -> usize {
    let (mut deliveries, senders): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|pending| (pending.delivery, pending.outcome)).unzip();
    let outcomes = invoke::invoke(handler, &mut deliveries, guard, max_attempts).await;
    for (sender, outcome) in senders.into_iter().zip(outcomes) {
        // A producer that no longer waits will publish the event again.
        let _ = sender.send(outcome);
    }
    deliveries.len()
}
