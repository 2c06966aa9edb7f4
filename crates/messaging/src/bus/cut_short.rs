//! Deliveries that ended with the process or the connection. The event itself may be the cause, so it is isolated from
//! other events step by step, and becomes a dead letter in the end:
//!
//! 1. after the first such end the event is handled in a small batch,
//! 2. after the second end it is isolated: the process handles no other event of the queue meanwhile. The first two ends count
//!    for all events that were in the process, whichever of them was the cause,
//! 3. each further end counts for this event only: it is handled again after a delay, isolated, by a process that has handled
//!    other events for [`ISOLATION_START_DELAY`]. So it is not counted when a process ends soon after its start for another reason,
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

/// Maximum number of events in a handler call with an event that was attempted and cut short so often: an event that fails
/// its batch must not fail the other events in each attempt.
pub(super) fn max_batch(attempt: u32, times_cut_short: u32) -> usize {
    // An end counts like a failed attempt.
    match attempt.max(times_cut_short + 1) {
        0 | 1 => usize::MAX,
        2 => 8,
        _ => 1,
    }
}
