//! Batches that handlers are working on. Their age distinguishes a stuck consumer from an idle one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_platform::runtime::LockExt as _;
use tokio::time::Instant;

/// The start times of all batches in flight, by queue. Clones share one state.
#[derive(Clone, Default)]
pub(super) struct InFlight {
    state: Arc<Mutex<InFlightState>>,
}

#[derive(Default)]
struct InFlightState {
    started: BTreeMap<(&'static str, u64), Instant>,
    next_id: u64,
}

/// One batch in flight, until the guard is dropped.
pub(super) struct InFlightGuard {
    state: Arc<Mutex<InFlightState>>,
    key: (&'static str, u64),
}

impl InFlight {
    pub(super) fn begin(&self, queue: &'static str) -> InFlightGuard {
        let mut state = self.state.locked();
        let key = (queue, state.next_id);
        state.next_id += 1;
        state.started.insert(key, Instant::now());
        InFlightGuard { state: Arc::clone(&self.state), key }
    }

    /// The age of the oldest batch of `queue` in flight.
    pub(super) fn oldest_age(&self, queue: &'static str) -> Option<Duration> {
        let state = self.state.locked();
        let mut of_queue = state.started.range((queue, 0)..=(queue, u64::MAX));
        of_queue.next().map(|(_, started)| started.elapsed())
    }
}

impl InFlightGuard {
    pub(super) fn queue(&self) -> &'static str {
        self.key.0
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.state.locked().started.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn oldest_age_is_reported_per_queue_until_handled() {
        let in_flight = InFlight::default();
        let first = in_flight.begin("one");
        tokio::time::advance(Duration::from_secs(5)).await;
        let _second = in_flight.begin("one");
        assert_eq!(in_flight.oldest_age("one"), Some(Duration::from_secs(5)));
        assert_eq!(in_flight.oldest_age("other"), None);
        drop(first);
        assert_eq!(in_flight.oldest_age("one"), Some(Duration::ZERO));
    }
}
