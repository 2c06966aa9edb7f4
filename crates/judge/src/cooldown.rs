//! The cooldown of a failing endpoint: a queue must not wait for one timeout after another.

use std::sync::Mutex;
use std::time::Duration;

use assay_platform::runtime::LockExt as _;
use tokio::time::Instant;

/// Consecutive failures that start a cooldown.
const MAX_FAILURES: u32 = 3;
const COOLDOWN: Duration = Duration::from_secs(30);
/// Upper bound of a `Retry-After`.
const MAX_COOLDOWN: Duration = Duration::from_secs(300);

/// Blocks requests to an endpoint for a while after consecutive failures.
#[derive(Debug, Default)]
pub(crate) struct Cooldown {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
}

impl Cooldown {
    /// Whether a request may be sent. After a cooldown a single request probes the endpoint, while the others stay blocked.
    pub(crate) fn allows_request(&self, now: Instant) -> bool {
        let mut state = self.state.locked();
        match state.until {
            None => true,
            Some(until) if until > now => false,
            Some(_) => {
                state.until = Some(now + COOLDOWN);
                true
            }
        }
    }

    /// Ends the cooldown and returns whether there was one. An unusable answer is a success of the endpoint, too.
    pub(crate) fn record_success(&self) -> bool {
        std::mem::take(&mut *self.state.locked()).until.is_some()
    }

    /// Counts a failure, with the `Retry-After` of the endpoint if any. Returns the cooldown that this failure starts, for the
    /// caller to log.
    pub(crate) fn record_failure(&self, now: Instant, retry_after: Option<Duration>) -> Option<Duration> {
        let mut state = self.state.locked();
        state.failures = state.failures.saturating_add(1);
        let is_active = state.until.is_some_and(|until| until > now);
        let cooldown = match retry_after {
            Some(retry_after) => retry_after.min(MAX_COOLDOWN),
            None if state.failures >= MAX_FAILURES => COOLDOWN,
            None => return None,
        };
        let until = now + cooldown;
        state.until = Some(state.until.map_or(until, |current| current.max(until)));
        (!is_active).then_some(cooldown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_failures_start_a_cooldown() {
        let (cooldown, start) = (Cooldown::default(), Instant::now());
        assert_eq!(cooldown.record_failure(start, None), None);
        assert!(!cooldown.record_success());
        assert_eq!(
            [cooldown.record_failure(start, None), cooldown.record_failure(start, None)],
            [None, None]
        );
        assert!(cooldown.allows_request(start));
        assert_eq!(cooldown.record_failure(start, None), Some(COOLDOWN));
        assert!(!cooldown.allows_request(start));
        // Failures of requests in flight start no second cooldown.
        assert_eq!(cooldown.record_failure(start, None), None);
    }

    #[test]
    fn one_probe_ends_the_cooldown_for_all() {
        let (cooldown, start) = (Cooldown::default(), Instant::now());
        for _ in 0..MAX_FAILURES {
            cooldown.record_failure(start, None);
        }
        let later = start + COOLDOWN;
        assert_eq!([cooldown.allows_request(later), cooldown.allows_request(later)], [true, false]);
        assert_eq!(cooldown.record_failure(later, None), None);
        assert!(!cooldown.allows_request(later));
        let much_later = later + COOLDOWN;
        assert!(cooldown.allows_request(much_later));
        assert!(cooldown.record_success());
        assert_eq!([cooldown.allows_request(much_later), cooldown.allows_request(much_later)], [true, true]);
    }

    #[test]
    fn retry_after_sets_a_bounded_cooldown() {
        let (cooldown, start) = (Cooldown::default(), Instant::now());
        assert_eq!(
            cooldown.record_failure(start, Some(Duration::from_secs(90))),
            Some(Duration::from_secs(90))
        );
        assert!(!cooldown.allows_request(start + Duration::from_secs(89)));
        assert!(cooldown.allows_request(start + Duration::from_secs(90)));
        let cooldown = Cooldown::default();
        assert_eq!(cooldown.record_failure(start, Some(Duration::from_secs(86_400))), Some(MAX_COOLDOWN));
    }
}
