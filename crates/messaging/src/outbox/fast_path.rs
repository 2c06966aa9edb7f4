//! The outbox fast path (ADR 13): events are written as claimed by the relay of the same process and passed to it in memory
//! after the commit. The relay neither polls for them nor claims them, which would cost the database more than writing and
//! deleting them.
//!
//! The table stays the source of truth. Events that do not take the fast path (the relay is behind, the bus is down, the
//! process crashes) are polled from it: at once if they were written unclaimed, otherwise when their lease expires.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_contracts::time::Timestamp;
use assay_platform::runtime::LockExt as _;
use tokio::sync::Notify;

use super::rows::{BatchLimit, ClaimedEvent, LEASE_MILLIS};
use crate::envelope::OutgoingEvent;

/// From this size on the relay counts as behind, and further events stay in the table only.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;

/// Remaining lease with which an event may still be published: longer than the interval at which a relay renews leases.
const MIN_LEASE_LEFT_MILLIS: i64 = LEASE_MILLIS / 2;

/// Whether the events of a transaction take the fast path, and until when the relay of this process has claimed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastPathClaim {
    claimed_until: Option<Timestamp>,
}

impl FastPathClaim {
    /// No fast path: any relay may claim the events.
    pub const NONE: Self = Self { claimed_until: None };

    pub(super) fn until(claimed_until: Timestamp) -> Self {
        Self { claimed_until: Some(claimed_until) }
    }

    pub(super) fn claimed_until(self) -> Option<Timestamp> {
        self.claimed_until
    }

    /// Value of the column `claimed_until`.
    pub(super) fn claimed_until_millis(self) -> i64 {
        self.claimed_until.map_or(0, Timestamp::as_millis)
    }
}

/// Events on the fast path.
#[derive(Default)]
pub(super) struct FastPathQueue {
    /// Whether a relay is running, the bus is up and no isolated event is due.
    is_open: AtomicBool,
    queued: Mutex<Queued>,
    pub(super) arrived: Notify,
}

#[derive(Default)]
struct Queued {
    events: VecDeque<QueuedEvent>,
    bytes: usize,
}

struct QueuedEvent {
    row: ClaimedEvent,
    claimed_until: Timestamp,
}

impl FastPathQueue {
    /// Opens or closes the fast path; while it is closed all events are polled from the table.
    pub(super) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    /// Whether events of the next transaction may take the fast path.
    pub(super) fn accepts_events(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) && self.queued.locked().bytes < MAX_QUEUED_BYTES
    }

    /// Adds committed events.
    pub(super) fn push(&self, events: Vec<OutgoingEvent>, created_at: Timestamp, claimed_until: Timestamp) {
        let mut queued = self.queued.locked();
        for event in events {
            queued.bytes += event.payload.len();
            queued.events.push_back(QueuedEvent { row: ClaimedEvent { event, created_at }, claimed_until });
        }
        drop(queued);
        self.arrived.notify_one();
    }

    /// Takes the oldest events within `limit`. Those whose lease is about to expire are dropped: the table has them.
    pub(super) fn take(&self, now: Timestamp, limit: BatchLimit) -> Vec<ClaimedEvent> {
        let min_claimed_until = now.plus_millis(MIN_LEASE_LEFT_MILLIS);
        let (mut taken, mut taken_bytes) = (Vec::new(), 0);
        let mut queued = self.queued.locked();
        while let Some(next) = queued.events.front()
            && limit.has_room(taken.len(), taken_bytes, next.row.event.payload.len())
            && let Some(QueuedEvent { row, claimed_until }) = queued.events.pop_front()
        {
            let bytes = row.event.payload.len();
            queued.bytes -= bytes;
            if claimed_until >= min_claimed_until {
                taken_bytes += bytes;
                taken.push(row);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::now;

    use super::*;
    use crate::outbox::tests::event;

    #[test]
    fn queue_accepts_events_only_while_open_and_below_its_limit() {
        let queue = FastPathQueue::default();
        assert!(!queue.accepts_events());
        queue.set_open(true);
        assert!(queue.accepts_events());
        let mut large = event();
        large.payload = "x".repeat(MAX_QUEUED_BYTES);
        queue.push(vec![large], now(), now().plus_millis(LEASE_MILLIS));
        assert!(!queue.accepts_events());
        assert_eq!(queue.take(now(), BatchLimit::CLAIM).len(), 1);
        assert!(queue.accepts_events());
        queue.set_open(false);
        assert!(!queue.accepts_events());
    }

    #[test]
    fn events_are_taken_in_order_unless_their_lease_is_expiring() {
        let (queue, start) = (FastPathQueue::default(), now());
        let events = [event(), event(), event()];
        let until = start.plus_millis(LEASE_MILLIS);
        queue.push(events[..2].to_vec(), start, until);
        queue.push(events[2..].to_vec(), start, until.plus_millis(LEASE_MILLIS));
        let ids = |rows: Vec<ClaimedEvent>| rows.into_iter().map(|row| row.event.id).collect::<Vec<_>>();
        assert_eq!(ids(queue.take(start, BatchLimit { events: 1, bytes: 1 })), [events[0].id]);
        let later = start.plus_millis(MIN_LEASE_LEFT_MILLIS + 1);
        assert_eq!(ids(queue.take(later, BatchLimit::CLAIM)), [events[2].id]);
    }

    #[test]
    fn take_is_bounded_by_bytes_unless_a_single_event_is_larger() {
        let queue = FastPathQueue::default();
        let sized = |bytes: usize| OutgoingEvent { payload: "x".repeat(bytes), ..event() };
        let until = now().plus_millis(LEASE_MILLIS);
        queue.push([4, 4, 4, 11, 1].map(sized).into(), now(), until);
        let limit = BatchLimit { events: 10, bytes: 10 };
        let sizes = || queue.take(now(), limit).iter().map(|row| row.event.payload.len()).collect::<Vec<_>>();
        assert_eq!([sizes(), sizes(), sizes(), sizes()], [vec![4, 4], vec![4], vec![11], vec![1]]);
    }
}
