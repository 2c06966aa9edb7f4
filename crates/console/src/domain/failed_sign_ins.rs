//! Limits failed attempts to sign in with keys that could be guessed: a bootstrap key is a text that an operator chose.
//! Sign-in links and generated keys have 256 random bits and need no limit.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use assay_platform::runtime::LockExt as _;

const WINDOW: Duration = Duration::from_secs(60);

/// Counts failed attempts of all clients per minute: behind a proxy the console cannot tell clients apart.
pub(crate) struct FailedSignIns {
    per_minute: u32,
    window: Mutex<Window>,
}

struct Window {
    began: Instant,
    failed: u32,
}

impl FailedSignIns {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute, window: Mutex::new(Window { began: Instant::now(), failed: 0 }) }
    }

    /// Counts an attempt as failed before it is made, so that concurrent attempts cannot exceed the limit.
    ///
    /// # Errors
    /// The seconds until the next attempt is allowed.
    pub(crate) fn count_attempt(&self, now: Instant) -> Result<(), u64> {
        let mut window = self.window.locked();
        let age = now.saturating_duration_since(window.began);
        let Some(left) = WINDOW.checked_sub(age).filter(|left| !left.is_zero()) else {
            *window = Window { began: now, failed: 1 };
            return Ok(());
        };
        if window.failed >= self.per_minute {
            return Err(left.as_secs() + 1);
        }
        window.failed += 1;
        Ok(())
    }

    /// Takes back the count of an attempt that did not fail.
    pub(crate) fn take_back_attempt(&self) {
        let mut window = self.window.locked();
        window.failed = window.failed.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sign_ins_are_limited_per_minute() {
        let limit = FailedSignIns::new(3);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limit.count_attempt(start), Ok(()));
        }
        assert!(limit.count_attempt(start).is_err_and(|seconds| seconds <= 61));
        let later = start + WINDOW + Duration::from_secs(1);
        for _ in 0..3 {
            assert_eq!(limit.count_attempt(later), Ok(()), "a new minute begins");
        }
        assert!(limit.count_attempt(later).is_err());
    }

    #[test]
    fn successful_sign_ins_are_not_counted() {
        let limit = FailedSignIns::new(1);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limit.count_attempt(start), Ok(()));
            limit.take_back_attempt();
        }
        assert_eq!(limit.count_attempt(start), Ok(()));
        assert!(limit.count_attempt(start).is_err());
    }

    #[test]
    fn concurrent_attempts_share_the_limit() {
        let limit = FailedSignIns::new(5);
        let start = Instant::now();
        let passed: usize = std::thread::scope(|scope| {
            let attempts: Vec<_> =
                (0..40).map(|_| scope.spawn(|| limit.count_attempt(start).is_ok())).collect();
            attempts.into_iter().filter_map(|attempt| attempt.join().ok()).filter(|passed| *passed).count()
        });
        assert_eq!(passed, 5);
    }
}
