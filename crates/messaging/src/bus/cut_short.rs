//! Deliveries that ended with the process or the connection. The cause may have been the event itself, so it is taken apart
//! from others, step by step, and in the end becomes a dead letter by itself:
//!
//! 1. after the first such end it is handled in a small batch,
//! 2. after the second one alone: no other event of its queue is handled by the process meanwhile. Until here the counts are
//!    those of all deliveries that were in the process, so they prove nothing,
//! 3. each further end was its own: it is handled again after a delay, alone,
//! 4. after [`MAX`] ends it is given up.

/// From here on a delivery is handled alone, and only ends of its own are counted.
pub(crate) const ALONE: u32 = 2;

/// From here on a delivery is not handled any more.
pub(crate) const MAX: u32 = 5;

/// Reason of the dead letter.
pub(crate) fn reason(cut_short: u32) -> String {
    format!("the process or the connection ended {cut_short} times while it was handled")
}

/// Most events in one call of the handler with an event of this attempt: one that fails its batch must not fail the others
/// again and again.
pub(super) fn max_batch(attempt: u32, cut_short: u32) -> usize {
    match attempt.max(cut_short + 1) {
        0 | 1 => usize::MAX,
        2 => 8,
        _ => 1,
    }
}
