//! Bounds failed attempts to sign in. Tokens and generated keys have 256 random bits; a bootstrap key may be shorter.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);

/// Counts failed attempts of all clients per minute: a page cannot tell clients apart behind a proxy.
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

    /// The seconds until the next attempt is allowed; `None` when it is allowed now.
    pub(crate) fn wait_seconds(&self, now: Instant) -> Option<u64> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let left = WINDOW.checked_sub(now.saturating_duration_since(window.began))?;
        (window.failed >= self.per_minute).then(|| left.as_secs() + 1)
    }

    pub(crate) fn record(&self, now: Instant) {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(window.began) >= WINDOW {
            *window = Window { began: now, failed: 0 };
        }
        window.failed = window.failed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_sign_ins_are_bounded_per_minute() {
        let limit = FailedSignIns::new(3);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limit.wait_seconds(start), None);
            limit.record(start);
        }
        assert!(limit.wait_seconds(start).is_some_and(|seconds| seconds <= 61));
        let later = start + WINDOW + Duration::from_secs(1);
        assert_eq!(limit.wait_seconds(later), None);
        limit.record(later);
        assert_eq!(limit.wait_seconds(later), None, "the count begins again");
    }
}
