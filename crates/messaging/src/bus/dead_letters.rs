//! Dead letters, for operators.

use assay_contracts::time::Timestamp;

/// A delivery without further attempts. It stays on the broker until an operator retries or drops it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Id of the event; `None` when the message is not a valid event.
    pub event_id: Option<String>,
    /// Topic of the event; `None` when the message is not a valid event.
    pub topic: Option<String>,
    /// Reason of the last failure.
    pub reason: String,
    /// Number of the last attempt.
    pub attempt: u32,
    /// Time of the last failure; `None` when the broker dead-lettered the message itself.
    pub failed_at: Option<Timestamp>,
    /// The envelope as delivered, or the raw message when it is not a valid event.
    pub payload: Vec<u8>,
}

/// Decision on a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterDecision {
    /// Leave it among the dead letters.
    Keep,
    /// Publish it again, to its queue only, as attempt 1.
    Retry,
    /// Delete it.
    Drop,
}

/// Counts of one review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetterReview {
    /// Dead letters before the review. A lower bound: a message that was not read may hold several.
    pub total: u64,
    /// Dead letters that were passed to `decide`.
    pub seen: u64,
    /// Dead letters that were published again.
    pub retried: u64,
    /// Dead letters that were deleted.
    pub dropped: u64,
}

/// Dead letters cannot be reviewed.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The bus runs inside one process and has no dead letters.
    #[error("the local bus has no dead letters: rejected events stay in the outbox of their producer")]
    LocalBus,
    /// The queue does not exist: it has never been consumed.
    #[error("queue {0} has never been consumed: name one such as scoring-worker.conversation-accepted")]
    UnknownQueue(String),
    /// The broker cannot be reached or failed.
    #[error("bus is unavailable: {0}")]
    Unavailable(String),
}
