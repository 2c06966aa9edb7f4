//! The bus of a single process. It stores nothing: an event is handed over when its consumers have handled it, so
//! that the producers' outboxes make it durable.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::delivery::{Delivery, Handler, Outcome};
use super::in_hand::{Handling, InHand};
use super::{PublishError, Subscription, handling};
use crate::envelope::OutgoingEvent;

type QueuesByName = HashMap<&'static str, Queue>;
type Queues = Arc<Mutex<QueuesByName>>;

/// Queues in memory.
pub(super) struct LocalBus {
    queues: Queues,
    next_consumer: AtomicUsize,
    max_attempts: u32,
    in_hand: InHand,
}

/// The consumers that share the events of some topics. Like a broker's queue it outlives them: an event of its topics is
/// not handed over before one of them is back.
struct Queue {
    topics: Vec<&'static str>,
    consumers: Vec<(usize, mpsc::Sender<Letter>)>,
    /// Whose turn it is.
    turn: usize,
}

/// A delivery and the way back to its producer, who reads a dropped one as "nobody handled it".
struct Letter {
    delivery: Delivery,
    answer: oneshot::Sender<Outcome>,
}

impl LocalBus {
    pub(super) fn new(max_attempts: u32, in_hand: InHand) -> Self {
        Self { queues: Arc::default(), next_consumer: AtomicUsize::new(0), max_attempts, in_hand }
    }

    pub(super) async fn publish(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        join_all(events.iter().map(|event| self.publish_one(event))).await
    }

    async fn publish_one(&self, event: &OutgoingEvent) -> Result<(), PublishError> {
        let takers = self.takers(&event.topic)?;
        if takers.is_empty() && event.needs_consumer {
            return Err(PublishError::Unroutable { topic: event.topic.clone() });
        }
        let outcomes = join_all(takers.iter().map(|taker| deliver(taker, event))).await;
        // Every queue is given the event before the first failure counts.
        outcomes.into_iter().try_for_each(|outcome| self.judge(outcome?, event.attempt))
    }

    /// One consumer of each queue that takes the topic.
    fn takers(&self, topic: &str) -> Result<Vec<mpsc::Sender<Letter>>, PublishError> {
        let mut queues = lock(&self.queues);
        let takers = queues.values_mut().filter(|queue| queue.topics.contains(&topic));
        takers.map(|queue| queue.next_consumer().ok_or_else(stopped)).collect()
    }

    fn judge(&self, outcome: Outcome, attempt: u32) -> Result<(), PublishError> {
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Retry { reason } if attempt >= self.max_attempts => {
                let reason = format!("attempt {attempt} of {}: {reason}", self.max_attempts);
                Err(PublishError::Rejected { reason })
            }
            Outcome::Retry { reason } => Err(PublishError::Retry { reason }),
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
        let (sender, mut letters) = mpsc::channel(max_in_flight);
        let _registration = self.register(&subscription, sender);
        let mut running = FuturesUnordered::new();
        let mut in_flight = 0;
        loop {
            let room = subscription.max_batch.max(1).min(max_in_flight - in_flight);
            let mut batch = Vec::new();
            tokio::select! {
                // In this order: after the stop nothing more is taken in, and finished work goes before new work.
                biased;
                () = stop.cancelled() => break,
                Some(settled) = running.next() => in_flight -= settled,
                taken = letters.recv_many(&mut batch, room), if room > 0 => {
                    in_flight += taken;
                    let in_hand = self.in_hand.hand_over(subscription.queue);
                    running.push(work(&*handler, batch, in_hand, self.max_attempts));
                }
            }
        }
        // What nobody has begun to handle goes back to its producers at once.
        drop(letters);
        while running.next().await.is_some() {}
    }

    fn register(&self, subscription: &Subscription, sender: mpsc::Sender<Letter>) -> Registration {
        let consumer = self.next_consumer.fetch_add(1, Ordering::Relaxed);
        let mut queues = lock(&self.queues);
        let queue = queues.entry(subscription.queue).or_insert_with(|| Queue {
            topics: subscription.topics.iter().map(|topic| topic.name).collect(),
            consumers: Vec::new(),
            turn: 0,
        });
        queue.consumers.push((consumer, sender));
        Registration { queues: self.queues.clone(), queue: subscription.queue, consumer }
    }
}

impl Queue {
    fn next_consumer(&mut self) -> Option<mpsc::Sender<Letter>> {
        self.turn = self.turn.wrapping_add(1);
        let index = self.turn.checked_rem(self.consumers.len())?;
        self.consumers.get(index).map(|(_, sender)| sender.clone())
    }
}

/// A consumer's place in its queue; gives it up when dropped.
struct Registration {
    queues: Queues,
    queue: &'static str,
    consumer: usize,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut queues = lock(&self.queues);
        let Some(queue) = queues.get_mut(self.queue) else { return };
        queue.consumers.retain(|(consumer, _)| *consumer != self.consumer);
    }
}

async fn deliver(taker: &mpsc::Sender<Letter>, event: &OutgoingEvent) -> Result<Outcome, PublishError> {
    let delivery = Delivery::parse(event.payload.as_bytes(), event.attempt)
        .map_err(|error| PublishError::Rejected { reason: error.to_string() })?;
    let (answer, outcome) = oneshot::channel();
    taker.send(Letter { delivery, answer }).await.map_err(|_| stopped())?;
    outcome.await.map_err(|_| stopped())
}

fn stopped() -> PublishError {
    PublishError::Unavailable("the consumer has stopped".to_owned())
}

/// Handles a batch and answers how many deliveries it was.
async fn work(handler: &dyn Handler, batch: Vec<Letter>, in_hand: Handling, max_attempts: u32) -> usize {
    let (mut deliveries, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|letter| (letter.delivery, letter.answer)).unzip();
    let outcomes = handling::handle(handler, &mut deliveries, in_hand, max_attempts).await;
    for (answer, outcome) in answers.into_iter().zip(outcomes) {
        // A producer that no longer listens will publish the event again.
        let _ = answer.send(outcome);
    }
    deliveries.len()
}

/// The map is only changed by single calls that do not panic.
fn lock(queues: &Mutex<QueuesByName>) -> MutexGuard<'_, QueuesByName> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}
