//! Deliveries that ended with the process or the connection. The event itself may be the cause, so it is isolated from
//! other events step by step, and becomes a dead letter in the end:
//!
//! 1. after the first such end the event is handled in a small batch,
//! 2. after the second end it is isolated: the process handles no other event of the queue meanwhile. Up to here each end
//!    counts for all events that were in the process, so the counts prove nothing,
//! 3. each further end counts for this event only: it is handled again after a delay, isolated, by a process that has handled
//!    other events for [`ISOLATION_START_DELAY`]. A process that ends soon after each start for other reasons does not handle
//!    it, so these ends do not count for it,
//! 4. after [`GIVE_UP_THRESHOLD`] ends it is given up.

use std::time::Duration;

/// From this count on an event is isolated.
pub(crate) const ISOLATION_THRESHOLD: u32 = 2;

/// From the start of a relay or the session of a consumer to its first isolated event.
pub(crate) const ISOLATION_START_DELAY: Duration = Duration::from_secs(3);

/// From this count on an event is not handled any more.
pub(crate) const GIVE_UP_THRESHOLD: u32 = 5;

/// For operators: why an event was isolated, delayed or given up.
pub(crate) fn reason(times_cut_short: u32) -> String {
    format!("the process or the connection ended {times_cut_short} times while it was handled")
}

/// Maximum number of events in a handler call that contains an event of this attempt and count: an event that fails its
/// batch must not fail the other events in each attempt.
pub(super) fn max_batch(attempt: u32, times_cut_short: u32) -> usize {
    // An end counts like a failed attempt.
    match attempt.max(times_cut_short + 1) {
        0 | 1 => usize::MAX,
        2 => 8,
        _ => 1,
    }
}
