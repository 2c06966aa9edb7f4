//! Failed deliveries. Before its message is acked, each is stored in a retry, isolation or dead-letter queue.

use assay_contracts::time::Timestamp;
use lapin::types::ShortString;

use super::broker::Broker;
use super::message::{Failure, Message, Original};
use crate::bus::cut_short;
use crate::bus::delivery::Outcome;

/// A delivered event that is to be settled, and the delivery tag of its message.
pub(super) struct UnsettledEvent {
    pub(super) tag: u64,
    pub(super) original: Original,
    pub(super) result: DeliveryResult,
}

/// The result of a delivery: decides where the event is stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeliveryResult {
    Handled(Outcome),
    /// Not handled, because at least [`cut_short::ISOLATION_THRESHOLD`] of its deliveries ended with the process or the connection:
    /// goes to the isolation queue.
    Isolate,
    /// Not handled, because a delivery from the isolation queue ended in that way, too: goes to a retry queue.
    HandleLater,
}

/// Events that are done or stored elsewhere, and those that could not be stored.
pub(super) struct StoreResult {
    /// For each settled event, the delivery tag of its message.
    pub(super) settled: Vec<u64>,
    pub(super) not_stored: Vec<UnsettledEvent>,
    pub(super) error: Option<String>,
}

/// Where a failed event is stored, and the headers it gets.
struct Destination {
    queue: ShortString,
    attempt: u32,
    times_cut_short: u32,
    reason: String,
    is_dead: bool,
}

/// Publishes each event that is not done to its destination, in a separate message, and waits for the broker's confirms.
/// The original message may be acked only after that: an event may exist twice for a moment, but is never lost.
pub(super) async fn store_failures(
    broker: &Broker,
    queue: &str,
    events: Vec<UnsettledEvent>,
    now: Timestamp,
) -> StoreResult {
    let messages: Vec<Message<'_>> =
        events.iter().filter_map(|event| broker.message_for(queue, event, now)).collect();
    let mut sent = broker.publisher.send(&messages).await.into_iter();
    drop(messages);
    let mut stored =
        StoreResult { settled: Vec::with_capacity(events.len()), not_stored: Vec::new(), error: None };
    for event in events {
        let is_done = event.result == DeliveryResult::Handled(Outcome::Done);
        let result = if is_done { Some(Ok(())) } else { sent.next() };
        match result {
            Some(Ok(())) => stored.settled.push(event.tag),
            Some(Err(error)) => {
                stored.error = Some(format!("failed delivery was not stored: {error:?}"));
                stored.not_stored.push(event);
            }
            // Unreachable: `send` returns one result for each message.
            None => stored.not_stored.push(event),
        }
    }
    stored
}

impl Broker {
    /// The message to publish for an event; `None` when the event is done.
    fn message_for<'e>(&self, queue: &str, event: &'e UnsettledEvent, now: Timestamp) -> Option<Message<'e>> {
        let destination = self.destination(queue, event)?;
        let message_id = event.original.message_id.as_ref().map(ShortString::as_str);
        let (attempt, reason) = (event.original.attempt, destination.reason.as_str());
        if destination.is_dead {
            tracing::error!(queue, message_id, attempt, reason, "delivery became a dead letter");
        } else {
            tracing::warn!(queue, message_id, attempt, reason, "delivery is tried again later");
        }
        let failure = Failure {
            reason,
            failed_at_millis: Some(now.as_millis()),
            attempt: destination.attempt,
            times_cut_short: destination.times_cut_short,
        };
        Some(Message::of_failed(&event.original, destination.queue, &failure))
    }

    /// `None` when the event is done.
    fn destination(&self, queue: &str, event: &UnsettledEvent) -> Option<Destination> {
        let &Original { attempt, times_cut_short, .. } = &event.original;
        let max_attempts = self.retries.max_attempts;
        let dead = |reason: String| {
            let queue = self.names.dead_letter_queue(queue);
            Some(Destination { queue, attempt, times_cut_short: 0, reason, is_dead: true })
        };
        match &event.result {
            DeliveryResult::Handled(Outcome::Done) => None,
            DeliveryResult::Handled(Outcome::Reject { reason }) => dead(reason.clone()),
            DeliveryResult::Handled(Outcome::Retry { reason }) if attempt >= max_attempts => {
                dead(format!("attempt {attempt} of {max_attempts}: {reason}"))
            }
            DeliveryResult::Handled(Outcome::Retry { reason }) => {
                let queue = self.retry_queue(queue, attempt);
                let reason = reason.clone();
                Some(Destination { queue, attempt: attempt + 1, times_cut_short: 0, reason, is_dead: false })
            }
            DeliveryResult::Handled(Outcome::Postpone { reason }) => {
                let queue = self.retry_queue(queue, attempt);
                let reason = reason.clone();
                Some(Destination { queue, attempt, times_cut_short, reason, is_dead: false })
            }
            DeliveryResult::HandleLater => {
                // The first delivery that is cut short in isolation gets the first delay, the second one the next.
                let times_in_isolation = times_cut_short.saturating_sub(cut_short::ISOLATION_THRESHOLD);
                Some(Destination {
                    queue: self.retry_queue(queue, times_in_isolation),
                    attempt,
                    times_cut_short,
                    reason: cut_short::reason(times_cut_short),
                    is_dead: false,
                })
            }
            DeliveryResult::Isolate => Some(Destination {
                queue: self.names.isolation_queue(queue),
                attempt,
                // Only deliveries that were cut short before this message was published, but at least the threshold, so that the
                // event stays isolated. Other events were in flight beside this message: one of them may be the cause.
                times_cut_short: event.original.earlier_times_cut_short.max(cut_short::ISOLATION_THRESHOLD),
                reason: cut_short::reason(times_cut_short),
                is_dead: false,
            }),
        }
    }

    /// The queue with the first delay after the first failure, and so on; the last one serves all further failures.
    fn retry_queue(&self, queue: &str, failures: u32) -> ShortString {
        let delays = &self.retries.delays;
        let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
        match delays.get(index).or(delays.last()) {
            Some(delay) => self.names.retry_queue(queue, *delay),
            // Cannot happen: `Bus::open` refuses an empty list. A dead letter is not lost.
            None => self.names.dead_letter_queue(queue),
        }
    }
}
