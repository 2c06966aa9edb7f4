//! Deliveries in the hands of handlers: a consumer that hangs looks like one that has nothing to do, unless somebody
//! looks at the clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Since when deliveries are being handled, for each queue. Cloned freely; all clones are one.
#[derive(Clone, Default)]
pub(super) struct InHand {
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    since: BTreeMap<(&'static str, u64), Instant>,
    next: u64,
}

/// Deliveries that are being handled, for as long as it lives.
pub(super) struct Handling {
    taken: Arc<Mutex<Taken>>,
    key: (&'static str, u64),
}

impl InHand {
    /// Notes that deliveries of `queue` are handed to a handler now.
    pub(super) fn hand_over(&self, queue: &'static str) -> Handling {
        let mut taken = lock(&self.taken);
        let key = (queue, taken.next);
        taken.next += 1;
        taken.since.insert(key, Instant::now());
        Handling { taken: Arc::clone(&self.taken), key }
    }

    /// For how long the oldest deliveries of `queue` have been in the hands of a handler.
    pub(super) fn oldest(&self, queue: &'static str) -> Option<Duration> {
        let taken = lock(&self.taken);
        let mut of_queue = taken.since.range((queue, 0)..=(queue, u64::MAX));
        of_queue.next().map(|(_, since)| since.elapsed())
    }
}

impl Handling {
    pub(super) fn queue(&self) -> &'static str {
        self.key.0
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        lock(&self.taken).since.remove(&self.key);
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    // Nothing panics while the lock is held.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_delivery_of_each_queue_is_known_until_it_is_handled() {
        let in_hand = InHand::default();
        let first = in_hand.hand_over("one");
        tokio::time::advance(Duration::from_secs(5)).await;
        let _second = in_hand.hand_over("one");
        assert_eq!(in_hand.oldest("one"), Some(Duration::from_secs(5)));
        assert_eq!(in_hand.oldest("other"), None);
        drop(first);
        assert_eq!(in_hand.oldest("one"), Some(Duration::ZERO));
    }
}
