//! How long things are kept: a period for each organization and each kind of thing. The age of a ticket, and of everything
//! made of it, is that of its id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// How long it is remembered that a ticket was deleted, in milliseconds: longer than every event about it is retried, and
/// longer than anybody should leave a dead letter alone. Events that are older are refused by those who would keep what
/// they bring.
pub const DELETIONS_REMEMBERED_MILLIS: i64 = 90 * DAY_MILLIS;

/// Longest period that is not for ever, in days: a hundred years.
pub const MAX_DAYS: u32 = 36_500;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

const FOREVER: &str = "forever";

/// How long something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// Until somebody deletes it.
    Forever,
    /// So many days, from 1 to [`MAX_DAYS`].
    Days(u32),
}

/// A text or number that is no period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a period is a number of days from 1 to {MAX_DAYS}, or `forever`; this is `{0}`")]
pub struct InvalidPeriod(String);

impl Period {
    /// A period as settings and databases hold it: days, and 0 for ever.
    ///
    /// # Errors
    /// When it is longer than [`MAX_DAYS`].
    pub fn from_stored_days(days: u32) -> Result<Self, InvalidPeriod> {
        match days {
            0 => Ok(Self::Forever),
            1..=MAX_DAYS => Ok(Self::Days(days)),
            _ => Err(InvalidPeriod(days.to_string())),
        }
    }

    /// The reverse of [`Self::from_stored_days`].
    pub const fn stored_days(self) -> u32 {
        match self {
            Self::Forever => 0,
            Self::Days(days) => days,
        }
    }

    /// What is older than this moment is no longer kept at `now`; `None`: everything is kept.
    pub fn kept_since(self, now: Timestamp) -> Option<Timestamp> {
        self.millis().map(|millis| now.plus_millis(-millis))
    }

    /// Until when something is kept that was made at `moment`.
    pub fn end_from(self, moment: Timestamp) -> Timestamp {
        self.millis().map_or(Timestamp::MAX, |millis| moment.plus_millis(millis))
    }

    /// Its length; `None` when it has no end.
    pub const fn millis(self) -> Option<i64> {
        match self {
            Self::Forever => None,
            Self::Days(days) => Some(days as i64 * DAY_MILLIS),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => formatter.write_str(FOREVER),
            Self::Days(days) => write!(formatter, "{days}"),
        }
    }
}

impl FromStr for Period {
    type Err = InvalidPeriod;

    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        if text == FOREVER {
            return Ok(Self::Forever);
        }
        match text.parse::<u32>() {
            Ok(days @ 1..=MAX_DAYS) => Ok(Self::Days(days)),
            _ => Err(InvalidPeriod(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_written_as_it_is_read() {
        for text in ["forever", "1", "30", "36500"] {
            assert_eq!(text.parse::<Period>().map(|period| period.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "0", "-1", "36501", "Forever", "30d", "4294967296"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_stored_that_is_no_period() {
        assert_eq!(Period::from_stored_days(0), Ok(Period::Forever));
        assert_eq!(Period::from_stored_days(7), Ok(Period::Days(7)));
        assert!(Period::from_stored_days(36_501).is_err());
        assert_eq!([Period::Forever, Period::Days(7)].map(Period::stored_days), [0, 7]);
    }

    #[test]
    fn what_is_older_than_its_period_is_not_kept() {
        let now = Timestamp::saturating_from_millis(10 * DAY_MILLIS);
        assert_eq!(Period::Forever.kept_since(now), None);
        assert_eq!(Period::Days(3).kept_since(now).map(Timestamp::as_millis), Some(7 * DAY_MILLIS));
        assert_eq!(Period::Days(3).end_from(now).as_millis(), 13 * DAY_MILLIS);
        assert_eq!(Period::Forever.end_from(now), Timestamp::MAX);
    }
}
