//! Failed deliveries: each is stored in a retry queue or among the dead letters before its message is acknowledged.

use assay_contracts::time::Timestamp;
use lapin::types::ShortString;

use super::broker::Broker;
use super::message::{Failure, Message, Original};
use crate::bus::delivery::Outcome;

/// An event, the delivery tag of its message, and the handler's outcome.
pub(super) struct HandledEvent {
    pub(super) tag: u64,
    pub(super) original: Original,
    pub(super) outcome: Outcome,
}

/// Events that are done or stored elsewhere, and those that could not be stored.
pub(super) struct StoredFailures {
    /// The tag of its message for each completed event.
    pub(super) completed: Vec<u64>,
    pub(super) not_stored: Vec<HandledEvent>,
    pub(super) error: Option<String>,
}

enum Destination {
    Retry(ShortString),
    DeadLetters(ShortString),
}

/// Publishes failed events to their retry queue or to the dead letters, each in a message of its own, and waits for the
/// broker's confirms. Only then may the originals be acknowledged: until then an event exists twice, and never not at all.
pub(super) async fn store_failures(
    broker: &Broker,
    queue: &str,
    handled: Vec<HandledEvent>,
    now: Timestamp,
) -> StoredFailures {
    let messages: Vec<Message<'_>> =
        handled.iter().filter_map(|event| broker.message_for(queue, event, now)).collect();
    let mut sent = broker.publisher.send(&messages).await.into_iter();
    drop(messages);
    let mut stored =
        StoredFailures { completed: Vec::with_capacity(handled.len()), not_stored: Vec::new(), error: None };
    for event in handled {
        let result = if event.outcome == Outcome::Done { Some(Ok(())) } else { sent.next() };
        match result {
            Some(Ok(())) => stored.completed.push(event.tag),
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
    /// The message to publish for an event that failed; `None` when it is done.
    fn message_for<'e>(&self, queue: &str, event: &'e HandledEvent, now: Timestamp) -> Option<Message<'e>> {
        let attempt = event.original.attempt;
        let max_attempts = self.retries.max_attempts;
        let (destination, reason) = match &event.outcome {
            Outcome::Done => return None,
            Outcome::Reject { reason } => (self.dead_letters(queue), reason.clone()),
            Outcome::Retry { reason } if attempt >= max_attempts => {
                (self.dead_letters(queue), format!("attempt {attempt} of {max_attempts}: {reason}"))
            }
            Outcome::Retry { reason } => (self.retry_queue(queue, attempt), reason.clone()),
        };
        let message_id = event.original.message_id.as_ref().map(ShortString::as_str);
        let (destination, next_attempt) = match destination {
            Destination::Retry(retry_queue) => {
                tracing::warn!(queue, message_id, attempt, reason, "delivery is tried again later");
                (retry_queue, attempt + 1)
            }
            Destination::DeadLetters(dead_letters) => {
                tracing::error!(queue, message_id, attempt, reason, "delivery became a dead letter");
                (dead_letters, attempt)
            }
        };
        let failure =
            Failure { reason: &reason, failed_at_millis: Some(now.as_millis()), attempt: next_attempt };
        Some(Message::of_failed(&event.original, destination, &failure))
    }

    fn dead_letters(&self, queue: &str) -> Destination {
        Destination::DeadLetters(self.names.dead_letter_queue(queue))
    }

    /// Delays in order: the first after the first attempt, and so on; the last one serves all further attempts.
    fn retry_queue(&self, queue: &str, attempt: u32) -> Destination {
        let delays = &self.retries.delays;
        let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        match delays.get(index).or(delays.last()) {
            Some(delay) => Destination::Retry(self.names.retry_queue(queue, *delay)),
            // `Bus::open` refuses an empty list; a dead letter is the safe choice all the same.
            None => self.dead_letters(queue),
        }
    }
}
