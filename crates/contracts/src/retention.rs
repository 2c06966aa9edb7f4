//! Retention periods, per organization and kind of data. The age of a ticket, and of all data derived from it, is the age of
//! its id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::{DAY_MILLIS, Timestamp};

/// Retention of tombstones (records of deleted tickets), in milliseconds: longer than the retries of an event, and longer
/// than a dead letter should stay unhandled. Consumers that store data refuse older events.
pub const TOMBSTONE_RETENTION_MILLIS: i64 = 90 * DAY_MILLIS;

/// Longest limited retention period, in days: a hundred years.
pub const MAX_DAYS: u32 = 36_500;

const FOREVER: &str = "forever";

/// Retention period of one kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionPeriod {
    /// Kept until it is deleted on request.
    Forever,
    /// Days, from 1 to [`MAX_DAYS`].
    Days(u32),
}

/// The text or number is not a retention period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a retention period is a number of days from 1 to {MAX_DAYS}, or `forever`; this is `{0}`")]
pub struct InvalidRetentionPeriod(String);

impl RetentionPeriod {
    /// From the form of settings and databases: days, 0 for ever.
    ///
    /// # Errors
    /// When it is longer than [`MAX_DAYS`].
    pub fn from_stored_days(days: u32) -> Result<Self, InvalidRetentionPeriod> {
        match days {
            0 => Ok(Self::Forever),
            1..=MAX_DAYS => Ok(Self::Days(days)),
            _ => Err(InvalidRetentionPeriod(days.to_string())),
        }
    }

    /// The reverse of [`Self::from_stored_days`].
    pub const fn stored_days(self) -> u32 {
        match self {
            Self::Forever => 0,
            Self::Days(days) => days,
        }
    }

    /// Data older than this time has expired at `now`; `None` when nothing expires.
    pub fn cutoff(self, now: Timestamp) -> Option<Timestamp> {
        self.millis().map(|millis| now.plus_millis(-millis))
    }

    /// Expiry of data created at `created_at`.
    pub fn expires_at(self, created_at: Timestamp) -> Timestamp {
        self.millis().map_or(Timestamp::MAX, |millis| created_at.plus_millis(millis))
    }

    /// Whether it ends before another one.
    pub const fn is_shorter_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::Days(days), Self::Days(others)) => days < others,
            (Self::Days(_), Self::Forever) => true,
            (Self::Forever, _) => false,
        }
    }

    /// Length in milliseconds; `None` for ever.
    pub const fn millis(self) -> Option<i64> {
        match self {
            Self::Forever => None,
            Self::Days(days) => Some(days as i64 * DAY_MILLIS),
        }
    }
}

impl fmt::Display for RetentionPeriod {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => formatter.write_str(FOREVER),
            Self::Days(days) => write!(formatter, "{days}"),
        }
    }
}

impl FromStr for RetentionPeriod {
    type Err = InvalidRetentionPeriod;

    fn from_str(text: &str) -> Result<Self, InvalidRetentionPeriod> {
        if text == FOREVER {
            return Ok(Self::Forever);
        }
        match text.parse::<u32>() {
            Ok(days @ 1..=MAX_DAYS) => Ok(Self::Days(days)),
            _ => Err(InvalidRetentionPeriod(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_period_round_trips_through_text() {
        for text in ["forever", "1", "30", "36500"] {
            assert_eq!(text.parse::<RetentionPeriod>().map(|period| period.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "0", "-1", "36501", "Forever", "30d", "4294967296"] {
            assert!(text.parse::<RetentionPeriod>().is_err(), "{text}");
        }
    }

    #[test]
    fn stored_days_are_validated() {
        assert_eq!(RetentionPeriod::from_stored_days(0), Ok(RetentionPeriod::Forever));
        assert_eq!(RetentionPeriod::from_stored_days(7), Ok(RetentionPeriod::Days(7)));
        assert!(RetentionPeriod::from_stored_days(36_501).is_err());
        assert_eq!(
            [RetentionPeriod::Forever, RetentionPeriod::Days(7)].map(RetentionPeriod::stored_days),
            [0, 7]
        );
    }

    #[test]
    fn cutoff_and_expiry_follow_the_period() {
        let now = Timestamp::saturating_from_millis(10 * DAY_MILLIS);
        assert_eq!(RetentionPeriod::Forever.cutoff(now), None);
        assert_eq!(RetentionPeriod::Days(3).cutoff(now).map(Timestamp::as_millis), Some(7 * DAY_MILLIS));
        assert_eq!(RetentionPeriod::Days(3).expires_at(now).as_millis(), 13 * DAY_MILLIS);
        assert_eq!(RetentionPeriod::Forever.expires_at(now), Timestamp::MAX);
    }
}
