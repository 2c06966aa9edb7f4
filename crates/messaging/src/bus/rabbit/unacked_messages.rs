//! The unacked messages of a session. A message is acked when all its events are settled.

use std::collections::BTreeMap;

use super::prefetch_window::UnackedCounts;

/// Messages that were delivered and are not acknowledged, by delivery tag.
#[derive(Default)]
pub(super) struct UnackedMessages {
    messages: BTreeMap<u64, UnackedMessage>,
    counts: UnackedCounts,
    /// Number of the current consumer of the session.
    consumer: u64,
}

struct UnackedMessage {
    /// Number of its events.
    events: usize,
    /// Number of its events that are not settled.
    pending: usize,
    bytes: usize,
    /// The consumer that got the message; `None`: it was taken from the isolation queue.
    consumer: Option<u64>,
}

/// Where the session got a message from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Consumer,
    /// Taken with `basic.get`: messages with lower tags may have arrived for the consumer and not be read from its stream yet.
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
        self.messages.insert(tag, UnackedMessage { events, pending: events, bytes, consumer });
        self.counts.bytes += bytes;
        self.counts.messages += 1;
        self.counts.of_consumer += usize::from(consumer.is_some());
        self.counts.events += events;
        self.counts.pending += events;
    }

    /// Removes a message that was requeued or is to be acknowledged.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Some(message) = self.messages.remove(&tag) {
            self.counts.messages -= 1;
            self.counts.of_consumer -= usize::from(message.consumer == Some(self.consumer));
            self.counts.bytes -= message.bytes;
            self.counts.events -= message.events;
            self.counts.pending -= message.pending;
        }
    }

    /// Counts one settled event for each tag. Returns the tags to acknowledge now, each with the `multiple` flag of
    /// `basic.ack`.
    ///
    /// An ack with `multiple` covers all lower tags, too. One is used for the messages below the first one that has pending
    /// events, and its tag must be that of a message from a consumer: all messages with lower tags have been added. Below a
    /// tag from the isolation queue there may be messages that were not read yet, which must not be acknowledged. The
    /// messages above are acknowledged singly.
    pub(super) fn settle(&mut self, tags: &[u64]) -> Vec<(u64, bool)> {
        // Messages without pending events: whether each is from a consumer, by tag.
        let mut settled = BTreeMap::new();
        for tag in tags {
            // Always found: only messages of which no event was dispatched are requeued.
            let Some(message) = self.messages.get_mut(tag) else { continue };
            message.pending -= 1;
            self.counts.pending -= 1;
            if message.pending == 0 {
                settled.insert(*tag, message.consumer.is_some());
                self.remove(*tag);
            }
        }
        let first_unacked = self.messages.keys().next().copied().unwrap_or(u64::MAX);
        let mut below = settled.range(..first_unacked).rev();
        let multiple_tag = below.find(|(_, is_from_consumer)| **is_from_consumer).map(|(tag, _)| *tag);
        let single_tags = settled.keys().filter(|tag| multiple_tag.is_none_or(|covered| **tag > covered));
        multiple_tag.map(|tag| (tag, true)).into_iter().chain(single_tags.map(|tag| (*tag, false))).collect()
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

    /// Messages from a consumer: their tags and numbers of events, each of which has ten bytes.
    fn of(messages: &[(u64, usize)]) -> UnackedMessages {
        let mut unacked = UnackedMessages::default();
        for (tag, events) in messages {
            unacked.add(*tag, *events, 10 * events, Source::Consumer);
        }
        unacked
    }
}
