//! How many events are handled together: as many as take [`CHUNK_TIME`]. So a chunk of quick events is worth its three transactions,
//! and slow events do not delay the turn of the next organization.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a chunk should take. Up to two of them are in flight before the next organization has its turn.
const CHUNK_TIME: Duration = Duration::from_millis(250);

/// The number of events in a chunk, measured on the chunks before.
#[derive(Debug)]
pub(super) struct ChunkSize {
    bounds: RangeInclusive<usize>,
    current: AtomicUsize,
}

impl ChunkSize {
    /// Begins with the lower bound, which is at least 1.
    pub(super) fn new(bounds: RangeInclusive<usize>) -> Self {
        let smallest = (*bounds.start()).max(1);
        let bounds = smallest..=(*bounds.end()).max(smallest);
        Self { bounds, current: AtomicUsize::new(smallest) }
    }

    pub(super) fn get(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// Adapts the size to a chunk of `events` events that took `elapsed`. It doubles at most, because some events are much slower
    /// than others.
    pub(super) fn adapt(&self, events: usize, elapsed: Duration) {
        // The cast is lossless for small numbers, and limits the infinity of a chunk that took no time.
        let fitting = (events as f64 * CHUNK_TIME.div_duration_f64(elapsed)) as usize;
        let size = fitting.min(2 * self.get()).clamp(*self.bounds.start(), *self.bounds.end());
        self.current.store(size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_follows_the_time_of_an_event_within_its_bounds() {
        let size = ChunkSize::new(4..=96);
        assert_eq!(size.get(), 4);
        let sizes = |milliseconds_per_event: f64, chunks: usize| {
            for _ in 0..chunks {
                let events = size.get();
                size.adapt(events, Duration::from_secs_f64(events as f64 * milliseconds_per_event / 1_000.0));
            }
            size.get()
        };
        assert_eq!(sizes(10.0, 1), 8, "it doubles at most");
        assert_eq!(sizes(10.0, 3), 25);
        assert_eq!(sizes(0.1, 5), 96);
        assert_eq!(sizes(1_000.0, 1), 4);
    }

    #[test]
    fn bounds_are_at_least_one() {
        let size = ChunkSize::new(0..=0);
        size.adapt(1, Duration::ZERO);
        assert_eq!(size.get(), 1);
    }
}
