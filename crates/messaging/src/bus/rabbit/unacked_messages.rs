//! The unacked messages of a session. A message is acked when all its events are settled.

use std::collections::{BTreeMap, BTreeSet};

use super::prefetch_window::UnackedCounts;

/// Messages that were delivered and are not acknowledged, by delivery tag.
#[derive(Default)]
pub(super) struct UnackedMessages {
    messages: BTreeMap<u64, Events>,
    counts: UnackedCounts,
    last_tag: u64,
    /// The last tag of earlier consumers of the session.
    earlier_tags: u64,
}

struct Events {
    all: usize,
    pending: usize,
    bytes: usize,
}

impl UnackedMessages {
    /// From now on messages are those of a new consumer.
    pub(super) fn begin_consumer(&mut self) {
        self.earlier_tags = self.last_tag;
        self.counts.of_consumer = 0;
    }

    /// Adds a message of `bytes` that holds `events` events.
    pub(super) fn add(&mut self, tag: u64, events: usize, bytes: usize) {
        self.messages.insert(tag, Events { all: events, pending: events, bytes });
        self.last_tag = tag;
        self.counts.bytes += bytes;
        self.counts.messages += 1;
        self.counts.of_consumer += 1;
        self.counts.events += events;
        self.counts.pending += events;
    }

    /// Removes a message that was requeued or is to be acknowledged.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Some(events) = self.messages.remove(&tag) {
            self.counts.messages -= 1;
            self.counts.of_consumer -= usize::from(tag > self.earlier_tags);
            self.counts.bytes -= events.bytes;
            self.counts.events -= events.all;
            self.counts.pending -= events.pending;
        }
    }

    /// Counts one settled event for each tag. Returns the tags to acknowledge now, each with the `multiple` flag of
    /// `basic.ack`: one frame covers all tags below the first unacked one, the others are acknowledged singly.
    pub(super) fn settle(&mut self, tags: &[u64]) -> Vec<(u64, bool)> {
        let mut settled = BTreeSet::new();
        for tag in tags {
            // Does not happen: only messages of which no event was dispatched are requeued.
            let Some(events) = self.messages.get_mut(tag) else { continue };
            events.pending -= 1;
            self.counts.pending -= 1;
            if events.pending == 0 {
                settled.insert(*tag);
                self.remove(*tag);
            }
        }
        let first_unacked = self.messages.keys().next().copied().unwrap_or(u64::MAX);
        let together = settled.range(..first_unacked).next_back().map(|tag| (*tag, true));
        let singly = settled.range(first_unacked..).map(|tag| (*tag, false));
        together.into_iter().chain(singly).collect()
    }

    pub(super) fn counts(&self) -> UnackedCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_acked_when_its_last_event_is_settled() {
        let mut unacked = of(&[(1, 3)]);
        assert_eq!(unacked.settle(&[1, 1]), []);
        assert_eq!(
            unacked.counts(),
            UnackedCounts { messages: 1, of_consumer: 1, events: 3, pending: 1, bytes: 30 }
        );
        assert_eq!(unacked.settle(&[1]), [(1, true)]);
        assert_eq!(unacked.counts(), UnackedCounts::default());
    }

    #[test]
    fn ack_never_covers_a_message_with_pending_events() {
        let mut unacked = of(&[(1, 1), (2, 1), (3, 2), (4, 1), (5, 1)]);
        assert_eq!(unacked.settle(&[1, 2, 3, 4, 5]), [(2, true), (4, false), (5, false)]);
        assert_eq!(unacked.settle(&[3]), [(3, true)]);
    }

    #[test]
    fn requeued_message_is_no_longer_unacked() {
        let mut unacked = of(&[(1, 2), (2, 4)]);
        unacked.remove(2);
        let left = UnackedCounts { messages: 1, of_consumer: 1, events: 2, pending: 2, bytes: 20 };
        assert_eq!(unacked.counts(), left);
        assert_eq!(unacked.settle(&[1, 1]), [(1, true)]);
    }

    #[test]
    fn messages_of_an_earlier_consumer_are_counted_apart() {
        let mut unacked = of(&[(1, 1), (2, 1)]);
        unacked.begin_consumer();
        unacked.add(3, 1, 10);
        let counted = |unacked: &UnackedMessages| (unacked.counts().messages, unacked.counts().of_consumer);
        assert_eq!(counted(&unacked), (3, 1));
        unacked.settle(&[1]);
        assert_eq!(counted(&unacked), (2, 1));
        unacked.settle(&[3]);
        assert_eq!(counted(&unacked), (1, 0));
    }

    fn of(messages: &[(u64, usize)]) -> UnackedMessages {
        let mut unacked = UnackedMessages::default();
        for (tag, events) in messages {
            unacked.add(*tag, *events, 10 * events);
        }
        unacked
    }
}
