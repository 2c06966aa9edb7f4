//! Leaving a failing endpoint alone for a while: a queue must not wait for one timeout after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many failures in a row and the endpoint is left alone.
const FAILURES: u32 = 3;
/// For so long.
const PAUSE: Duration = Duration::from_secs(30);
/// Longest pause that an endpoint may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Whether the endpoint is being asked at present.
#[derive(Debug, Default)]
pub(crate) struct Circuit {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl Circuit {
    /// Whether the endpoint may be asked. After a pause one question tries it, and the others wait for what it finds.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut state = self.lock();
        match state.open_until {
            None => true,
            Some(until) if until > now => false,
            Some(_) => {
                state.open_until = Some(now + PAUSE);
                true
            }
        }
    }

    /// The endpoint answered, whatever it said. Whether it had been left alone.
    pub(crate) fn answered(&self) -> bool {
        std::mem::take(&mut *self.lock()).open_until.is_some()
    }

    /// The endpoint failed, and perhaps asked for a pause. The pause that begins with this failure, if one does: it is for
    /// the caller to tell of it.
    pub(crate) fn failed(&self, now: Instant, asked: Option<Duration>) -> Option<Duration> {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        let is_open = state.open_until.is_some_and(|until| until > now);
        let pause = match asked {
            Some(asked) => asked.min(LONGEST_PAUSE),
            None if state.failures >= FAILURES => PAUSE,
            None => return None,
        };
        let until = now + pause;
        state.open_until = Some(state.open_until.map_or(until, |before| before.max(until)));
        (!is_open).then_some(pause)
    }

    /// Every change is a single step that does not panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_fails_again_and_again_is_left_alone_for_a_while() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        assert_eq!(circuit.failed(start, None), None);
        assert!(!circuit.answered());
        assert_eq!([circuit.failed(start, None), circuit.failed(start, None)], [None, None]);
        assert!(circuit.allows(start));
        assert_eq!(circuit.failed(start, None), Some(PAUSE));
        assert!(!circuit.allows(start));
        // Those that were under way tell of nothing new.
        assert_eq!(circuit.failed(start, None), None);
    }

    #[test]
    fn after_a_pause_one_question_tries_it_and_opens_it_for_all() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        for _ in 0..FAILURES {
            circuit.failed(start, None);
        }
        let later = start + PAUSE;
        assert_eq!([circuit.allows(later), circuit.allows(later)], [true, false]);
        assert_eq!(circuit.failed(later, None), None);
        assert!(!circuit.allows(later));
        let much_later = later + PAUSE;
        assert!(circuit.allows(much_later));
        assert!(circuit.answered());
        assert_eq!([circuit.allows(much_later), circuit.allows(much_later)], [true, true]);
    }

    #[test]
    fn a_pause_that_the_endpoint_asks_for_is_kept_within_reason() {
        let (circuit, start) = (Circuit::default(), Instant::now());
        assert_eq!(circuit.failed(start, Some(Duration::from_secs(90))), Some(Duration::from_secs(90)));
        assert!(!circuit.allows(start + Duration::from_secs(89)));
        assert!(circuit.allows(start + Duration::from_secs(90)));
        let circuit = Circuit::default();
        assert_eq!(circuit.failed(start, Some(Duration::from_secs(86_400))), Some(LONGEST_PAUSE));
    }
}
