//! How long to wait before a process that died is started again.

use std::time::Duration;

/// The wait after the first death.
const SHORTEST: Duration = Duration::from_millis(100);

/// The wait never grows beyond this.
const LONGEST: Duration = Duration::from_secs(5);

/// A process that lived this long had started properly: its death begins a new series.
const LONG_LIFE: Duration = Duration::from_secs(10);

/// The wait before the next start; it doubles with each early death.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// The wait after a process that lived for `lifetime`.
    pub(super) fn after(&mut self, lifetime: Duration) -> Duration {
        if lifetime >= LONG_LIFE {
            self.next = SHORTEST;
        }
        let wait = self.next;
        self.next = (2 * wait).min(LONGEST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_100_milliseconds_to_5_seconds() {
        let mut backoff = Backoff::new();
        let waits: Vec<u128> = (0..8).map(|_| backoff.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn a_process_that_lived_ten_seconds_is_restarted_quickly_again() {
        let mut backoff = Backoff::new();
        for _ in 0..5 {
            backoff.after(Duration::from_secs(9));
        }
        assert_eq!(backoff.after(Duration::from_secs(10)), SHORTEST);
    }
}
