//! When the next attempt is made, and when there is none: the schedule that Standard Webhooks 1.0 suggests ("Deliverability and
//! reliability"), and what follows from each answer.

use assay_contracts::time::Timestamp;

use super::attempt::Attempt;

/// A receiver that asks for patience gets at most so much, in seconds.
const LONGEST_RETRY_AFTER: i64 = 24 * 60 * 60;

/// An endpoint is not disabled before so many messages to it were given up since the last success.
pub const GIVEN_UP_AT_LEAST: u32 = 5;

const GONE: u16 = 410;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// `webhooks.retry_schedule_seconds` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhooks.retry_schedule_seconds must be whole seconds separated by commas, such as 0,5,300: {0}")]
pub struct InvalidSchedule(String);

/// How long an endpoint may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Days; 0: for ever.
    pub days: u32,
}

impl Patience {
    /// An endpoint that has failed since before this moment is disabled.
    pub fn failing_since_before(self, now: Timestamp) -> Option<Timestamp> {
        (self.days > 0).then(|| now.plus_millis(-i64::from(self.days) * DAY_MILLIS))
    }
}

/// The pauses before each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pauses_seconds: Vec<i64>,
    /// How long an endpoint may fail.
    pub patience: Patience,
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The endpoint has the message.
    Delivered,
    /// Another attempt is made.
    RetryAt(Timestamp),
    /// No further attempt is made.
    GivenUp,
    /// The endpoint wants no messages any more.
    Gone,
}

impl Schedule {
    /// Reads `0,5,300,…`: the first pause is that before the first attempt.
    ///
    /// # Errors
    /// When it is empty or holds anything but whole seconds.
    pub fn parse(text: &str, patience: Patience) -> Result<Self, InvalidSchedule> {
        let parse = |part: &str| {
            let seconds: Option<i64> = part.trim().parse().ok();
            seconds.filter(|seconds| *seconds >= 0).ok_or_else(|| InvalidSchedule(format!("`{part}`")))
        };
        Ok(Self { pauses_seconds: text.split(',').map(parse).collect::<Result<_, _>>()?, patience })
    }

    /// When a message that is made now is due.
    pub fn first_due(&self, now: Timestamp) -> Timestamp {
        now.plus_millis(self.pauses_seconds.first().copied().unwrap_or(0) * 1_000)
    }

    /// What follows from an attempt, the `number`th of its round, from 1. `lot` (0 to 1) spreads attempts: up to a tenth of the
    /// pause is added.
    pub fn verdict(&self, attempt: &Attempt, number: u32, now: Timestamp, lot: f64) -> Verdict {
        match attempt.status_code {
            Some(code) if (200..300).contains(&code) => return Verdict::Delivered,
            Some(GONE) => return Verdict::Gone,
            _ => {}
        }
        let next = usize::try_from(number).ok().and_then(|number| self.pauses_seconds.get(number));
        let Some(pause) = next else { return Verdict::GivenUp };
        let asked_for = attempt.retry_after_seconds.unwrap_or(0).clamp(0, LONGEST_RETRY_AFTER);
        let pause = (*pause).max(asked_for) * 1_000;
        let spread = (pause as f64 * 0.1 * lot.clamp(0.0, 1.0)) as i64;
        Verdict::RetryAt(now.plus_millis(pause + spread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "0,5,300,1800,7200,18000,36000,50400,72000,86400";

    fn schedule() -> Schedule {
        Schedule::parse(STANDARD, Patience { days: 5 }).unwrap()
    }

    fn answered(status_code: u16, retry_after_seconds: Option<i64>) -> Attempt {
        let mut attempt = Attempt::failed(Timestamp::MIN, 1, None);
        (attempt.status_code, attempt.retry_after_seconds) = (Some(status_code), retry_after_seconds);
        attempt
    }

    #[test]
    fn attempts_follow_the_standards_schedule_over_three_days() {
        let mut now = schedule().first_due(Timestamp::MIN);
        let mut moments = vec![now.as_millis() / 1_000];
        for number in 1.. {
            match schedule().verdict(&answered(500, None), number, now, 0.0) {
                Verdict::RetryAt(due) => now = due,
                verdict => {
                    assert_eq!(verdict, Verdict::GivenUp);
                    break;
                }
            }
            moments.push(now.as_millis() / 1_000);
        }
        // 75 h 35 min 5 s after the first one.
        assert_eq!(moments, [0, 5, 305, 2105, 9305, 27305, 63305, 113_705, 185_705, 272_105]);
    }

    #[test]
    fn every_answer_has_its_consequence() {
        let verdict = |code, after| schedule().verdict(&answered(code, after), 2, Timestamp::MIN, 0.0);
        let at = |seconds: i64| Verdict::RetryAt(Timestamp::MIN.plus_millis(seconds * 1_000));
        for code in [200, 201, 202, 204, 299] {
            assert_eq!(verdict(code, None), Verdict::Delivered, "{code}");
        }
        for code in [100, 199, 300, 301, 302, 307, 400, 404, 409, 429, 500, 502, 503, 504] {
            assert_eq!(verdict(code, None), at(300), "{code}");
        }
        assert_eq!(verdict(410, None), Verdict::Gone);
        assert_eq!(verdict(429, Some(30)), at(300), "a shorter pause than ours is not asked for");
        assert_eq!(verdict(503, Some(900)), at(900));
        assert_eq!(verdict(503, Some(i64::MAX)), at(86_400));
    }

    #[test]
    fn pauses_are_spread_by_a_tenth_at_most() {
        let due = |lot| schedule().verdict(&answered(500, None), 2, Timestamp::MIN, lot);
        assert_eq!(due(1.0), Verdict::RetryAt(Timestamp::MIN.plus_millis(330_000)));
        assert_eq!(due(7.0), due(1.0));
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in ["", "0,", "x", "-1", "0,1.5"] {
            assert!(Schedule::parse(text, Patience { days: 0 }).is_err(), "{text}");
        }
    }
}
