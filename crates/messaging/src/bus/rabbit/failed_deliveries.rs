//! Failed deliveries: each is stored in a retry queue or among the dead letters before its message is acknowledged.

use assay_contracts::time::Timestamp;
use lapin::types::ShortString;

use super::broker::Broker;
use super::message::{Failure, Message, Original};
use crate::bus::cut_short;
use crate::bus::delivery::Outcome;

/// An event, the delivery tag of its message, and what follows.
pub(super) struct SettledEvent {
    pub(super) tag: u64,
    pub(super) original: Original,
    pub(super) result: DeliveryResult,
}

/// What follows for a delivered event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeliveryResult {
    Handled(Outcome),
    /// Not handled: its deliveries ended with the process or the connection, and it is handled alone next.
    HandleAlone,
    /// Not handled: a delivery alone ended in that way; it is handled again after a delay.
    HandleLater,
}

/// Events that are done or stored elsewhere, and those that could not be stored.
pub(super) struct StoredFailures {
    /// The tag of its message for each completed event.
    pub(super) completed: Vec<u64>,
    pub(super) not_stored: Vec<SettledEvent>,
    pub(super) error: Option<String>,
}

/// Where a failed event is stored, and the headers it gets.
struct Next {
    queue: ShortString,
    attempt: u32,
    cut_short: u32,
    reason: String,
    is_dead: bool,
}

/// Publishes failed events to their retry queue or to the dead letters, each in a message of its own, and waits for the
/// broker's confirms. Only then may the originals be acknowledged: until then an event exists twice, and never not at all.
pub(super) async fn store_failures(
    broker: &Broker,
    queue: &str,
    handled: Vec<SettledEvent>,
    now: Timestamp,
) -> StoredFailures {
    let messages: Vec<Message<'_>> =
        handled.iter().filter_map(|event| broker.message_for(queue, event, now)).collect();
    let mut sent = broker.publisher.send(&messages).await.into_iter();
    drop(messages);
    let mut stored =
        StoredFailures { completed: Vec::with_capacity(handled.len()), not_stored: Vec::new(), error: None };
    for event in handled {
        let is_done = event.result == DeliveryResult::Handled(Outcome::Done);
        let result = if is_done { Some(Ok(())) } else { sent.next() };
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
    /// The message to publish for an event that is not done; `None` when it is.
    fn message_for<'e>(&self, queue: &str, event: &'e SettledEvent, now: Timestamp) -> Option<Message<'e>> {
        let next = self.next(queue, event)?;
        let message_id = event.original.message_id.as_ref().map(ShortString::as_str);
        let (attempt, reason) = (event.original.attempt, next.reason.as_str());
        if next.is_dead {
            tracing::error!(queue, message_id, attempt, reason, "delivery became a dead letter");
        } else {
            tracing::warn!(queue, message_id, attempt, reason, "delivery is tried again later");
        }
        let failure = Failure {
            reason,
            failed_at_millis: Some(now.as_millis()),
            attempt: next.attempt,
            cut_short: next.cut_short,
        };
        Some(Message::of_failed(&event.original, next.queue, &failure))
    }

    fn next(&self, queue: &str, event: &SettledEvent) -> Option<Next> {
        let &Original { attempt, cut_short, .. } = &event.original;
        let max_attempts = self.retries.max_attempts;
        let dead = |reason: String| {
            let queue = self.names.dead_letter_queue(queue);
            Some(Next { queue, attempt, cut_short: 0, reason, is_dead: true })
        };
        let retry = |after: u32, attempt: u32, cut_short: u32, reason: String| {
            let queue = self.retry_queue(queue, after);
            Some(Next { queue, attempt, cut_short, reason, is_dead: false })
        };
        match &event.result {
            DeliveryResult::Handled(Outcome::Done) => None,
            DeliveryResult::Handled(Outcome::Reject { reason }) => dead(reason.clone()),
            DeliveryResult::Handled(Outcome::Retry { reason }) if attempt >= max_attempts => {
                dead(format!("attempt {attempt} of {max_attempts}: {reason}"))
            }
            DeliveryResult::Handled(Outcome::Retry { reason }) => {
                retry(attempt, attempt + 1, 0, reason.clone())
            }
            DeliveryResult::Handled(Outcome::Postpone { reason }) => {
                retry(attempt, attempt, cut_short, reason.clone())
            }
            DeliveryResult::HandleLater => retry(
                cut_short.saturating_sub(cut_short::ALONE),
                attempt,
                cut_short,
                cut_short::reason(cut_short),
            ),
            DeliveryResult::HandleAlone => Some(Next {
                queue: self.names.alone_queue(queue),
                attempt,
                // Of deliveries that were not alone other events may have been the cause.
                cut_short: event.original.cut_short_before.max(cut_short::ALONE),
                reason: cut_short::reason(cut_short),
                is_dead: false,
            }),
        }
    }

    /// Delays in order: the first after the first attempt, and so on; the last one serves all further attempts.
    fn retry_queue(&self, queue: &str, attempt: u32) -> ShortString {
        let delays = &self.retries.delays;
        let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        match delays.get(index).or(delays.last()) {
            Some(delay) => self.names.retry_queue(queue, *delay),
            // `Bus::open` refuses an empty list; a dead letter is the safe choice all the same.
            None => self.names.dead_letter_queue(queue),
        }
    }
}
