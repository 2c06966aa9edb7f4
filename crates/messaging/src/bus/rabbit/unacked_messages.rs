//! The unacked messages of a session. A message is acked when all its events are settled.

use std::collections::BTreeMap;

use super::prefetch_window::UnackedCounts;

/// Messages that were delivered and are not acknowledged, by delivery tag.
#[derive(Default)]
pub(super) struct UnackedMessages {
    messages: BTreeMap<u64, Events>,
    counts: UnackedCounts,
    /// Number of the current consumer of the session.
    consumer: u64,
}

struct Events {
    all: usize,
    pending: usize,
    bytes: usize,
    /// The consumer that got the message; `None`: it was taken from the isolation queue.
    consumer: Option<u64>,
}

/// How a message came to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Consumer,
    /// Taken with `basic.get`: messages with lower tags may have arrived for the consumer that were not read from its stream.
    IsolationQueue,
}

impl UnackedMessages {
    /// From now on messages are those of a new consumer.
    pub(super) fn begin_consumer(&mut self) {
        self.consumer += 1;
        self.counts.of_consumer = 0;
    }

    /// Adds a message of `bytes` that holds `events` events.
    pub(super) fn add(&mut self, tag: u64, events: usize, bytes: usize, source: Source) {
        let consumer = (source == Source::Consumer).then_some(self.consumer);
        self.messages.insert(tag, Events { all: events, pending: events, bytes, consumer });
        self.counts.bytes += bytes;
        self.counts.messages += 1;
        self.counts.of_consumer += usize::from(consumer.is_some());
        self.counts.events += events;
        self.counts.pending += events;
    }

    /// Removes a message that was requeued or is to be acknowledged.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Some(events) = self.messages.remove(&tag) {
            self.counts.messages -= 1;
            self.counts.of_consumer -= usize::from(events.consumer == Some(self.consumer));
            self.counts.bytes -= events.bytes;
            self.counts.events -= events.all;
            self.counts.pending -= events.pending;
        }
    }

    /// Counts one settled event for each tag. Returns the tags to acknowledge now, each with the `multiple` flag of
    /// `basic.ack`: one frame covers all tags up to the last one of a consumer below the first unacked one, the others are
    /// acknowledged singly. Up to a tag of a consumer all messages have been added; below a tag of the isolation queue some may
    /// be unread, and must not be acknowledged.
    pub(super) fn settle(&mut self, tags: &[u64]) -> Vec<(u64, bool)> {
        let mut settled = BTreeMap::new();
        for tag in tags {
            // Does not happen: only messages of which no event was dispatched are requeued.
            let Some(events) = self.messages.get_mut(tag) else { continue };
            events.pending -= 1;
            self.counts.pending -= 1;
            if events.pending == 0 {
                settled.insert(*tag, events.consumer.is_some());
                self.remove(*tag);
            }
        }
        let first_unacked = self.messages.keys().next().copied().unwrap_or(u64::MAX);
        let mut below = settled.range(..first_unacked).rev();
        let together = below.find(|(_, is_of_a_consumer)| **is_of_a_consumer).map(|(tag, _)| *tag);
        let singly = settled.keys().filter(|tag| together.is_none_or(|together| **tag > together));
        together.map(|tag| (tag, true)).into_iter().chain(singly.map(|tag| (*tag, false))).collect()
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
        unacked.add(3, 1, 10, Source::Consumer);
        let counted = |unacked: &UnackedMessages| (unacked.counts().messages, unacked.counts().of_consumer);
        assert_eq!(counted(&unacked), (3, 1));
        unacked.settle(&[1]);
        assert_eq!(counted(&unacked), (2, 1));
        unacked.settle(&[3]);
        assert_eq!(counted(&unacked), (1, 0));
    }

    #[test]
    fn message_of_the_isolation_queue_is_acked_without_unread_messages_of_the_consumer() {
        let mut unacked = of(&[(1, 1), (2, 1)]);
        // Messages 3 and 4 have arrived and are not read.
        unacked.add(5, 1, 10, Source::IsolationQueue);
        assert_eq!(unacked.settle(&[1, 2, 5]), [(2, true), (5, false)]);
        unacked.add(6, 1, 10, Source::IsolationQueue);
        unacked.add(3, 1, 10, Source::Consumer);
        unacked.add(4, 1, 10, Source::Consumer);
        assert_eq!(unacked.counts().of_consumer, 2);
        unacked.begin_consumer();
        unacked.add(7, 1, 10, Source::Consumer);
        assert_eq!(unacked.settle(&[6]), [(6, false)]);
        assert_eq!(unacked.settle(&[3, 4]), [(4, true)]);
        assert_eq!(unacked.counts().of_consumer, 1);
        unacked.add(8, 1, 10, Source::IsolationQueue);
        unacked.add(9, 1, 10, Source::Consumer);
        assert_eq!(unacked.settle(&[7, 8, 9]), [(9, true)]);
        assert_eq!(unacked.counts(), UnackedCounts::default());
    }

    fn of(messages: &[(u64, usize)]) -> UnackedMessages {
        let mut unacked = UnackedMessages::default();
        for (tag, events) in messages {
            unacked.add(*tag, *events, 10 * events, Source::Consumer);
        }
        unacked
    }
}
