//! The short way from a transaction to the bus: its events are written as claimed by the relay of the same process, and
//! handed to it in memory when they are committed. The relay neither has to look for them nor to claim them, which costs
//! the database more than to write and to remove them.
//!
//! The table stays the truth. What is not handed over (the relay is behind, the bus is down, the process dies) is found
//! there: at once when it was written unclaimed, and when its claim ends otherwise.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_contracts::time::Timestamp;
use tokio::sync::Notify;

use super::{Claimed, LEASE_MILLIS};
use crate::envelope::OutgoingEvent;

/// Beyond this, in bytes of events, a relay is behind: the table holds its backlog better than memory does.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// How much of its lease an event must have left to be published: as long as a relay takes to renew it, and some.
const LEASE_LEFT_MILLIS: i64 = LEASE_MILLIS / 2;

/// Who publishes the events that a transaction writes: the relay that they are handed to, or whichever finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    claimed_until: Option<Timestamp>,
}

impl Handover {
    /// Whichever relay finds them.
    pub const NONE: Self = Self { claimed_until: None };

    /// The relay of this process, which has them until then.
    pub(super) fn until(claimed_until: Timestamp) -> Self {
        Self { claimed_until: Some(claimed_until) }
    }

    pub(super) fn claimed_until(self) -> Option<Timestamp> {
        self.claimed_until
    }

    /// The column of the row.
    pub(super) fn claimed_until_millis(self) -> i64 {
        self.claimed_until.map_or(0, Timestamp::as_millis)
    }
}

/// Events on the short way.
#[derive(Default)]
pub(super) struct Handovers {
    /// Whether a relay takes them.
    is_open: AtomicBool,
    waiting: Mutex<Waiting>,
    pub(super) arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Handed>,
    bytes: usize,
}

struct Handed {
    row: Claimed,
    claimed_until: Timestamp,
}

impl Handovers {
    /// Opens or closes the short way; closed, everything goes through the table.
    pub(super) fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    /// Whether events that are committed soon will be taken.
    pub(super) fn has_room(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) && self.waiting().bytes < MAX_WAITING_BYTES
    }

    /// Adds events that are committed.
    pub(super) fn push(&self, events: Vec<OutgoingEvent>, created_at: Timestamp, claimed_until: Timestamp) {
        let mut waiting = self.waiting();
        for event in events {
            waiting.bytes += event.payload.len();
            waiting.events.push_back(Handed { row: Claimed { event, created_at }, claimed_until });
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// The events that have waited longest, `limit` at most. One whose lease is about to end is left to the table.
    pub(super) fn take(&self, now: Timestamp, limit: u32) -> Vec<Claimed> {
        let still_leased = now.plus_millis(LEASE_LEFT_MILLIS);
        let mut taken = Vec::new();
        let mut waiting = self.waiting();
        while taken.len() < limit as usize {
            let Some(Handed { row, claimed_until }) = waiting.events.pop_front() else { break };
            waiting.bytes -= row.event.payload.len();
            if claimed_until >= still_leased {
                taken.push(row);
            }
        }
        taken
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while the lock is held.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::event::{AgentCreated, AgentFacts};
    use assay_platform::runtime::{new_id, now};

    use super::*;

    fn event() -> OutgoingEvent {
        let agent = AgentFacts { id: new_id(), external_id: "bot".to_owned(), name: "Bot".to_owned() };
        let created = AgentCreated { organization_id: new_id(), agent, created_at: now() };
        OutgoingEvent::new(new_id(), now(), &created).unwrap()
    }

    #[test]
    fn there_is_room_only_while_a_relay_takes_events_and_is_not_behind() {
        let handovers = Handovers::default();
        assert!(!handovers.has_room());
        handovers.set_open(true);
        assert!(handovers.has_room());
        let mut large = event();
        large.payload = "x".repeat(MAX_WAITING_BYTES);
        handovers.push(vec![large], now(), now().plus_millis(LEASE_MILLIS));
        assert!(!handovers.has_room());
        assert_eq!(handovers.take(now(), 10).len(), 1);
        assert!(handovers.has_room());
        handovers.set_open(false);
        assert!(!handovers.has_room());
    }

    #[test]
    fn events_are_taken_in_their_order_and_not_when_their_lease_is_about_to_end() {
        let (handovers, start) = (Handovers::default(), now());
        let events = [event(), event(), event()];
        let until = start.plus_millis(LEASE_MILLIS);
        handovers.push(events[..2].to_vec(), start, until);
        handovers.push(events[2..].to_vec(), start, until.plus_millis(LEASE_MILLIS));
        let ids = |rows: Vec<Claimed>| rows.into_iter().map(|row| row.event.id).collect::<Vec<_>>();
        assert_eq!(ids(handovers.take(start, 1)), [events[0].id]);
        assert_eq!(ids(handovers.take(start.plus_millis(LEASE_LEFT_MILLIS + 1), 10)), [events[2].id]);
    }
}
