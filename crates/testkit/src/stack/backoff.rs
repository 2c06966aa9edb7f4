//! Delay before a dead process is restarted.

use std::time::Duration;

/// Delay after the first exit.
const MIN_DELAY: Duration = Duration::from_millis(100);

/// Upper limit of the delay.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// A process that ran this long had started properly: its exit resets the delay.
const RESET_AFTER: Duration = Duration::from_secs(10);

/// Exponential backoff between restarts.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: MIN_DELAY }
    }

    /// The delay after a process that ran for `lifetime`.
    pub(super) fn after(&mut self, lifetime: Duration) -> Duration {
        if lifetime >= RESET_AFTER {
            self.next = MIN_DELAY;
        }
        let wait = self.next;
        self.next = (2 * wait).min(MAX_DELAY);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_five_seconds() {
        let mut backoff = Backoff::new();
        let waits: Vec<u128> = (0..8).map(|_| backoff.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn delay_resets_after_ten_seconds_of_uptime() {
        let mut backoff = Backoff::new();
        for _ in 0..5 {
            backoff.after(Duration::from_secs(9));
        }
        assert_eq!(backoff.after(Duration::from_secs(10)), MIN_DELAY);
    }
}
