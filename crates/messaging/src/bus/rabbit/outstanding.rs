//! Which messages may be acknowledged: those of which every event is settled.

use std::collections::{BTreeMap, BTreeSet};

use super::window::Held;

/// Messages that were taken in and are not acknowledged, by delivery tag.
#[derive(Default)]
pub(super) struct Outstanding {
    messages: BTreeMap<u64, Events>,
    held: Held,
}

struct Events {
    all: usize,
    unsettled: usize,
}

impl Outstanding {
    /// Remembers a message of so many events.
    pub(super) fn add(&mut self, tag: u64, events: usize) {
        self.messages.insert(tag, Events { all: events, unsettled: events });
        self.held.messages += 1;
        self.held.events += events;
        self.held.unsettled += events;
    }

    /// Forgets a message that is the broker's again.
    pub(super) fn remove(&mut self, tag: u64) {
        if let Some(events) = self.messages.remove(&tag) {
            self.held.messages -= 1;
            self.held.events -= events.all;
            self.held.unsettled -= events.unsettled;
        }
    }

    /// Notes one settled event for each tag. Answers which tags to acknowledge now, and whether with all before them:
    /// with one frame those below which nothing is outstanding, the others one by one.
    pub(super) fn settle(&mut self, tags: &[u64]) -> Vec<(u64, bool)> {
        let mut complete = BTreeSet::new();
        for tag in tags {
            // A tag that is not known was given back; no event of it is in anybody's hands.
            let Some(events) = self.messages.get_mut(tag) else { continue };
            events.unsettled -= 1;
            self.held.unsettled -= 1;
            if events.unsettled == 0 {
                complete.insert(*tag);
                self.remove(*tag);
            }
        }
        let first_outstanding = self.messages.keys().next().copied().unwrap_or(u64::MAX);
        let together = complete.range(..first_outstanding).next_back().map(|tag| (*tag, true));
        let singly = complete.range(first_outstanding..).map(|tag| (*tag, false));
        together.into_iter().chain(singly).collect()
    }

    pub(super) fn held(&self) -> Held {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_acknowledged_when_its_last_event_is_settled() {
        let mut outstanding = of(&[(1, 3)]);
        assert_eq!(outstanding.settle(&[1, 1]), []);
        assert_eq!(outstanding.held(), Held { messages: 1, events: 3, unsettled: 1 });
        assert_eq!(outstanding.settle(&[1]), [(1, true)]);
        assert_eq!(outstanding.held(), Held::default());
    }

    #[test]
    fn an_acknowledgement_never_covers_a_message_that_is_not_settled() {
        let mut outstanding = of(&[(1, 1), (2, 1), (3, 2), (4, 1), (5, 1)]);
        assert_eq!(outstanding.settle(&[1, 2, 3, 4, 5]), [(2, true), (4, false), (5, false)]);
        assert_eq!(outstanding.settle(&[3]), [(3, true)]);
    }

    #[test]
    fn what_was_given_back_is_no_longer_held() {
        let mut outstanding = of(&[(1, 2), (2, 4)]);
        outstanding.remove(2);
        assert_eq!(outstanding.held(), Held { messages: 1, events: 2, unsettled: 2 });
        assert_eq!(outstanding.settle(&[1, 1]), [(1, true)]);
    }

    fn of(messages: &[(u64, usize)]) -> Outstanding {
        let mut outstanding = Outstanding::default();
        for (tag, events) in messages {
            outstanding.add(*tag, *events);
        }
        outstanding
    }
}
