//! From outcomes to the broker: what is done may be acknowledged, what failed is first stored elsewhere.

use std::collections::BTreeSet;

use assay_contracts::time::Timestamp;
use lapin::message::Delivery;
use lapin::types::ShortString;

use super::Broker;
use super::message::{Failure, Message};
use crate::bus::Outcome;

/// A delivery, which attempt it was, and what became of it.
pub(super) struct Handled {
    pub(super) delivery: Delivery,
    pub(super) attempt: u32,
    pub(super) outcome: Outcome,
}

/// The tags that may be acknowledged now, and why others may not.
pub(super) struct Settled {
    pub(super) tags: BTreeSet<u64>,
    pub(super) error: Option<String>,
}

/// Where a failed delivery goes.
enum Destination {
    Retry(ShortString),
    DeadLetters(ShortString),
}

/// Puts failed deliveries onto their delay rung or among the dead letters, and waits until the broker has confirmed
/// them there. Only then may the originals be acknowledged: in between there are two of them, and never none.
pub(super) async fn settle(broker: &Broker, queue: &str, handled: &[Handled], now: Timestamp) -> Settled {
    let mut settled = Settled { tags: BTreeSet::new(), error: None };
    let mut failed_tags = Vec::new();
    let mut messages = Vec::new();
    for handled in handled {
        let tag = handled.delivery.delivery_tag;
        match broker.message_for(queue, handled, now) {
            None => {
                settled.tags.insert(tag);
            }
            Some(message) => {
                failed_tags.push(tag);
                messages.push(message);
            }
        }
    }
    for (tag, sent) in failed_tags.into_iter().zip(broker.publisher.send(&messages).await) {
        match sent {
            Ok(()) => {
                settled.tags.insert(tag);
            }
            Err(error) => settled.error = Some(format!("failed delivery was not stored: {error:?}")),
        }
    }
    settled
}

impl Broker {
    /// What to publish for a delivery that failed; nothing when it is done.
    fn message_for<'h>(&self, queue: &str, handled: &'h Handled, now: Timestamp) -> Option<Message<'h>> {
        let attempt = handled.attempt;
        let max_attempts = self.retries.max_attempts;
        let (destination, reason) = match &handled.outcome {
            Outcome::Done => return None,
            Outcome::Reject { reason } => (self.dead_letters(queue), reason.clone()),
            Outcome::Retry { reason } if attempt >= max_attempts => {
                (self.dead_letters(queue), format!("attempt {attempt} of {max_attempts}: {reason}"))
            }
            Outcome::Retry { reason } => (self.rung(queue, attempt), reason.clone()),
        };
        let message_id = handled.delivery.properties.message_id().as_ref().map(ShortString::as_str);
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
        let failure = Failure { reason: &reason, failed_at_millis: now.as_millis(), attempt: next_attempt };
        Some(Message::of_failed(&handled.delivery, destination, &failure))
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
