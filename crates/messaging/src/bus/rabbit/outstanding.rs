//! Which messages may be acknowledged: those of which every event is completed.

use std::collections::{BTreeMap, BTreeSet};

use super::prefetch_window::Unacked;

/// Messages that were delivered and are not acknowledged, by delivery tag.
#[derive(Default)]
pub(super) struct Outstanding {
    messages: BTreeMap<u64, Events>,
    unacked: Unacked,
}

struct Events {
    all: usize,
    pending: usize,
    bytes: usize,
}

impl Outstanding {
    /// Adds a message of `bytes` that holds `events` events.
    pub(super) fn add(&mut self, tag: u64, events: usize, bytes: usize) {
        self.messages.insert(tag, Events { all: events, pending: events, bytes });
        self.unacked.bytes += bytes;
        self.unacked.messages += 1;
        self.unacked.events += events;
        self.unacked.pending += events;
    }

    /// Removes a message that was requeued or is to be acknowledged.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Some(events) = self.messages.remove(&tag) {
            self.unacked.messages -= 1;
            self.unacked.bytes -= events.bytes;
            self.unacked.events -= events.all;
            self.unacked.pending -= events.pending;
        }
    }

    /// Counts one completed event for each tag. Returns the tags to acknowledge now, each with the `multiple` flag of
    /// `basic.ack`: one frame covers all tags below the first outstanding one, the others are acknowledged singly.
    pub(super) fn complete(&mut self, tags: &[u64]) -> Vec<(u64, bool)> {
        let mut completed = BTreeSet::new();
        for tag in tags {
            // An unknown tag was requeued; none of its events was dispatched.
            let Some(events) = self.messages.get_mut(tag) else { continue };
            events.pending -= 1;
            self.unacked.pending -= 1;
            if events.pending == 0 {
                completed.insert(*tag);
                self.remove(*tag);
            }
        }
        let first_outstanding = self.messages.keys().next().copied().unwrap_or(u64::MAX);
        let together = completed.range(..first_outstanding).next_back().map(|tag| (*tag, true));
        let singly = completed.range(first_outstanding..).map(|tag| (*tag, false));
        together.into_iter().chain(singly).collect()
    }

    pub(super) fn unacked(&self) -> Unacked {
        self.unacked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_acked_when_its_last_event_is_completed() {
        let mut outstanding = of(&[(1, 3)]);
        assert_eq!(outstanding.complete(&[1, 1]), []);
        assert_eq!(outstanding.unacked(), Unacked { messages: 1, events: 3, pending: 1, bytes: 30 });
        assert_eq!(outstanding.complete(&[1]), [(1, true)]);
        assert_eq!(outstanding.unacked(), Unacked::default());
    }

    #[test]
    fn ack_never_covers_a_message_with_pending_events() {
        let mut outstanding = of(&[(1, 1), (2, 1), (3, 2), (4, 1), (5, 1)]);
        assert_eq!(outstanding.complete(&[1, 2, 3, 4, 5]), [(2, true), (4, false), (5, false)]);
        assert_eq!(outstanding.complete(&[3]), [(3, true)]);
    }

    #[test]
    fn requeued_message_is_no_longer_unacked() {
        let mut outstanding = of(&[(1, 2), (2, 4)]);
        outstanding.remove(2);
        assert_eq!(outstanding.unacked(), Unacked { messages: 1, events: 2, pending: 2, bytes: 20 });
        assert_eq!(outstanding.complete(&[1, 1]), [(1, true)]);
    }

    fn of(messages: &[(u64, usize)]) -> Outstanding {
        let mut outstanding = Outstanding::default();
        for (tag, events) in messages {
            outstanding.add(*tag, *events, 10 * events);
        }
        outstanding
    }
}
