//! The retry schedule, by default the one that Standard Webhooks 1.0 suggests ("Deliverability and reliability"), and
//! the decision after each attempt.

use assay_contracts::time::{DAY_MILLIS, Timestamp};

use super::attempt::Attempt;

/// Upper bound of `Retry-After`: a day.
const MAX_RETRY_AFTER_SECONDS: i64 = 24 * 60 * 60;

/// Upper bound of a pause of the schedule: a year.
const MAX_PAUSE_SECONDS: i64 = 365 * 24 * 60 * 60;

/// An endpoint is disabled only after this many given-up messages since its last success.
pub const MIN_GIVEN_UP_TO_DISABLE: u32 = 5;

const STATUS_GONE: u16 = 410;

/// `webhooks.retry_schedule_seconds` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhooks.retry_schedule_seconds must be whole seconds separated by commas, such as 0,5,300: {0}")]
pub struct InvalidSchedule(String);

/// When a failing endpoint is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailurePolicy {
    /// 0: never.
    pub disable_after_days: u32,
}

impl FailurePolicy {
    /// An endpoint that has been failing since before this time is disabled once [`MIN_GIVEN_UP_TO_DISABLE`] messages
    /// were given up. `None`: never.
    pub fn disable_cutoff(self, now: Timestamp) -> Option<Timestamp> {
        let days = self.disable_after_days;
        (days > 0).then(|| now.plus_millis(-i64::from(days) * DAY_MILLIS))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pauses_seconds: Vec<i64>,
    pub failure_policy: FailurePolicy,
}

/// The decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    Delivered,
    RetryAt(Timestamp),
    /// The last attempt of the retry cycle failed. Only a replay begins another one.
    GivenUp,
    /// The endpoint answered 410: it is disabled.
    Gone,
}

impl Schedule {
    /// Parses `0,5,300,…`, starting with the pause before the first attempt.
    ///
    /// # Errors
    /// When a part is not a whole number of seconds or more than a year, or the text is empty.
    pub fn parse(text: &str, failure_policy: FailurePolicy) -> Result<Self, InvalidSchedule> {
        let parse = |part: &str| {
            let seconds: Option<i64> = part.trim().parse().ok();
            seconds
                .filter(|seconds| (0..=MAX_PAUSE_SECONDS).contains(seconds))
                .ok_or_else(|| InvalidSchedule(format!("`{part}`")))
        };
        Ok(Self { pauses_seconds: text.split(',').map(parse).collect::<Result<_, _>>()?, failure_policy })
    }

    /// Due time of the first attempt of a message created now.
    pub fn first_due(&self, now: Timestamp) -> Timestamp {
        now.plus_millis(self.pauses_seconds.first().copied().unwrap_or(0) * 1_000)
    }

    /// Decides after attempt `number` of the retry cycle, from 1. `jitter` (0 to 1) adds up to a tenth of the pause.
    pub fn decide(&self, attempt: &Attempt, number: u32, now: Timestamp, jitter: f64) -> RetryDecision {
        match attempt.status_code {
            Some(code) if (200..300).contains(&code) => return RetryDecision::Delivered,
            Some(STATUS_GONE) => return RetryDecision::Gone,
            _ => {}
        }
        // The first pause is that before attempt 1, so index `number` has the pause after this attempt.
        let next_pause = usize::try_from(number).ok().and_then(|number| self.pauses_seconds.get(number));
        let Some(pause_seconds) = next_pause else { return RetryDecision::GivenUp };
        let retry_after = attempt.retry_after_seconds.unwrap_or(0).clamp(0, MAX_RETRY_AFTER_SECONDS);
        let pause_millis = (*pause_seconds).max(retry_after) * 1_000;
        let jitter_millis = (pause_millis as f64 * 0.1 * jitter.clamp(0.0, 1.0)) as i64;
        RetryDecision::RetryAt(now.plus_millis(pause_millis + jitter_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "0,5,300,1800,7200,18000,36000,50400,72000,86400";

    fn schedule() -> Schedule {
        Schedule::parse(STANDARD, FailurePolicy { disable_after_days: 5 }).unwrap()
    }

    fn answered(status_code: u16, retry_after_seconds: Option<i64>) -> Attempt {
        Attempt { retry_after_seconds, ..Attempt::answered(Timestamp::MIN, 1, status_code) }
    }

    #[test]
    fn standard_schedule_spans_three_days() {
        let mut now = schedule().first_due(Timestamp::MIN);
        let mut due_seconds = vec![now.as_millis() / 1_000];
        for number in 1.. {
            match schedule().decide(&answered(500, None), number, now, 0.0) {
                RetryDecision::RetryAt(due) => now = due,
                decision => {
                    assert_eq!(decision, RetryDecision::GivenUp);
                    break;
                }
            }
            due_seconds.push(now.as_millis() / 1_000);
        }
        // The last attempt follows 75 h 35 min 5 s after the first one.
        assert_eq!(due_seconds, [0, 5, 305, 2105, 9305, 27305, 63305, 113_705, 185_705, 272_105]);
    }

    #[test]
    fn status_code_determines_retry_decision() {
        let decision = |code, after| schedule().decide(&answered(code, after), 2, Timestamp::MIN, 0.0);
        let at = |seconds: i64| RetryDecision::RetryAt(Timestamp::MIN.plus_millis(seconds * 1_000));
        for code in [200, 201, 202, 204, 299] {
            assert_eq!(decision(code, None), RetryDecision::Delivered, "{code}");
        }
        for code in [100, 199, 300, 301, 302, 307, 400, 404, 409, 429, 500, 502, 503, 504] {
            assert_eq!(decision(code, None), at(300), "{code}");
        }
        assert_eq!(decision(410, None), RetryDecision::Gone);
        assert_eq!(decision(429, Some(30)), at(300), "a Retry-After below our pause changes nothing");
        assert_eq!(decision(503, Some(900)), at(900));
        assert_eq!(decision(503, Some(i64::MAX)), at(86_400));
    }

    #[test]
    fn jitter_adds_at_most_a_tenth() {
        let due = |jitter| schedule().decide(&answered(500, None), 2, Timestamp::MIN, jitter);
        assert_eq!(due(1.0), RetryDecision::RetryAt(Timestamp::MIN.plus_millis(330_000)));
        assert_eq!(due(7.0), due(1.0));
    }

    #[test]
    fn invalid_schedule_is_refused() {
        for text in ["", "0,", "x", "-1", "0,1.5", "0,9223372036854775807"] {
            assert!(Schedule::parse(text, FailurePolicy { disable_after_days: 0 }).is_err(), "{text}");
        }
    }
}
