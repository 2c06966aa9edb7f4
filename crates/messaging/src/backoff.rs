//! Exponential back-off with jitter.

use std::time::Duration;

use assay_platform::runtime::random_bytes;

/// Delays that double from `initial` to `max`, each shortened by up to a half at random.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
}

impl Backoff {
    /// The delay after `failures` consecutive failures (from 1).
    pub(crate) fn delay(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.initial.saturating_mul(1 << doublings).min(self.max);
        // Without randomness the delay is still right, only without jitter.
        let jitter = random_bytes::<1>().map_or(0, |[byte]| byte);
        full - full.mul_f64(f64::from(jitter) / 512.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum_with_jitter_of_half() {
        let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(60) };
        for (failures, full) in [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (u32::MAX, 60)] {
            let delay = backoff.delay(failures);
            let full = Duration::from_secs(full);
            assert!(full / 2 <= delay && delay <= full, "{failures} failures: {delay:?}");
        }
    }
}
