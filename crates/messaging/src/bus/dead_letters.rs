//! Deliveries that were given up, for operators.

use assay_contracts::time::Timestamp;

/// A delivery that was given up. It stays on the broker until somebody decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Id of the event, unless the message is not one of ours.
    pub event_id: Option<String>,
    /// Its topic, unless the message is not one of ours.
    pub topic: Option<String>,
    /// Why it was given up.
    pub reason: String,
    /// The attempt that was the last.
    pub attempt: u32,
    /// When it was given up; unknown when the broker did it.
    pub failed_at: Option<Timestamp>,
    /// The event as it was delivered, or the message when it is not one of ours.
    pub payload: Vec<u8>,
}

/// What is to become of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterDecision {
    /// It stays where it is.
    Keep,
    /// It is delivered again, to its queue only, beginning with its first attempt.
    Retry,
    /// It is removed for good.
    Drop,
}

/// What a review came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetterReview {
    /// Dead letters there were before it. At least: a message may hold several, which only looking at it tells.
    pub total: u64,
    /// Dead letters that were looked at.
    pub seen: u64,
    /// Those that are delivered again.
    pub retried: u64,
    /// Those that are gone.
    pub dropped: u64,
}

/// Dead letters cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The bus is the one inside a process.
    #[error(
        "the local bus has no dead letters: events that were given up stay in the outbox of their producer"
    )]
    LocalBus,
    /// Nobody has ever consumed the queue.
    #[error("queue {0} has never been consumed: name one such as scoring-worker.conversation-accepted")]
    UnknownQueue(String),
    /// The broker is not there.
    #[error("bus is unavailable: {0}")]
    Unavailable(String),
}
