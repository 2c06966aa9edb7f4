//! From outcomes to the broker: what is done may be acknowledged, what failed is first stored elsewhere.

use assay_contracts::time::Timestamp;
use lapin::types::ShortString;

use super::Broker;
use super::batch::Original;
use super::message::{Failure, Message};
use crate::bus::Outcome;

/// An event, the delivery tag of its message, and what became of it.
pub(super) struct Handled {
    pub(super) tag: u64,
    pub(super) original: Original,
    pub(super) outcome: Outcome,
}

/// The tag of its message for each event that is settled, and why others are not.
pub(super) struct Settled {
    pub(super) tags: Vec<u64>,
    pub(super) left: Vec<Handled>,
    pub(super) error: Option<String>,
}

/// Where a failed delivery goes.
enum Destination {
    Retry(ShortString),
    DeadLetters(ShortString),
}

/// Puts failed events onto their delay rung or among the dead letters, each in a message of its own, and waits until
/// the broker has confirmed them there. Only then may the originals be acknowledged: in between there are two of them,
/// and never none.
pub(super) async fn settle(broker: &Broker, queue: &str, handled: Vec<Handled>, now: Timestamp) -> Settled {
    let messages: Vec<Message<'_>> =
        handled.iter().filter_map(|handled| broker.message_for(queue, handled, now)).collect();
    let mut sent = broker.publisher.send(&messages).await.into_iter();
    drop(messages);
    let mut settled = Settled { tags: Vec::with_capacity(handled.len()), left: Vec::new(), error: None };
    for handled in handled {
        let stored = if handled.outcome == Outcome::Done { Some(Ok(())) } else { sent.next() };
        match stored {
            Some(Ok(())) => settled.tags.push(handled.tag),
            Some(Err(error)) => {
                settled.error = Some(format!("failed delivery was not stored: {error:?}"));
                settled.left.push(handled);
            }
            // Every message has its answer.
            None => settled.left.push(handled),
        }
    }
    settled
}

impl Broker {
    /// What to publish for an event that failed; nothing when it is done.
    fn message_for<'h>(&self, queue: &str, handled: &'h Handled, now: Timestamp) -> Option<Message<'h>> {
        let attempt = handled.original.attempt;
        let max_attempts = self.retries.max_attempts;
        let (destination, reason) = match &handled.outcome {
            Outcome::Done => return None,
            Outcome::Reject { reason } => (self.dead_letters(queue), reason.clone()),
            Outcome::Retry { reason } if attempt >= max_attempts => {
                (self.dead_letters(queue), format!("attempt {attempt} of {max_attempts}: {reason}"))
            }
            Outcome::Retry { reason } => (self.rung(queue, attempt), reason.clone()),
        };
        let message_id = handled.original.message_id.as_ref().map(ShortString::as_str);
        let (destination, next_attempt) = match destination {
            Destination::Retry(rung) => {
                tracing::warn!(queue, message_id, attempt, reason, "delivery is tried again later");
                (rung, attempt + 1)
            }
            Destination::DeadLetters(dead_letters) => {
                tracing::error!(queue, message_id, attempt, reason, "delivery became a dead letter");
                (dead_letters, attempt)
            }
        };
        let failure =
            Failure { reason: &reason, failed_at_millis: Some(now.as_millis()), attempt: next_attempt };
        Some(Message::of_failed(&handled.original, destination, &failure))
    }

    fn dead_letters(&self, queue: &str) -> Destination {
        Destination::DeadLetters(self.names.dead_letter_queue(queue))
    }

    /// The first attempt is followed by the first delay, and so on; the last delay serves all others.
    fn rung(&self, queue: &str, attempt: u32) -> Destination {
        let delays = &self.retries.delays;
        let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        match delays.get(index).or(delays.last()) {
            Some(delay) => Destination::Retry(self.names.retry_queue(queue, *delay)),
            // `Bus::open` refuses an empty list; a dead letter is the safe place all the same.
            None => self.dead_letters(queue),
        }
    }
}
