//! Waiting longer after each failure, and never in step with the others.

use std::time::Duration;

use assay_platform::runtime::random_bytes;

/// Delays that double from `first` to `longest`, each shortened by up to a half at random.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Backoff {
    /// The delay after so many failures in a row (from 1).
    pub(crate) fn delay(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        // Without randomness the delay is still right, only not spread.
        let share = random_bytes::<1>().map_or(0, |[byte]| byte);
        full - full.mul_f64(f64::from(share) / 512.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_the_longest_and_is_shortened_by_half_at_most() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
        for (failures, full) in [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (u32::MAX, 60)] {
            let delay = backoff.delay(failures);
            let full = Duration::from_secs(full);
            assert!(full / 2 <= delay && delay <= full, "{failures} failures: {delay:?}");
        }
    }
}
