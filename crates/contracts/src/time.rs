//! Time: Unix epoch milliseconds everywhere.

use std::fmt;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// Milliseconds of a day. Days are those of UTC.
pub const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// A time in Unix epoch **milliseconds**, between 1970-01-01 and 9999-12-31 (both inclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// An integer outside of [`Timestamp::MIN`] … [`Timestamp::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be Unix epoch milliseconds from 0 to 253402300799999")]
pub struct TimestampOutOfRange;

/// The text is neither a day nor a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a day (2026-01-31, its beginning in UTC) or a time with its offset (2026-01-31T09:30:00Z) from 1970 to 9999"
)]
pub struct InvalidMoment;

impl Timestamp {
    /// 1970-01-01T00:00:00.000Z.
    pub const MIN: Self = Self(0);
    /// 9999-12-31T23:59:59.999Z, the last moment that ISO 8601 writes with four digits of the year.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Checks the range.
    pub const fn from_millis(millis: i64) -> Result<Self, TimestampOutOfRange> {
        if millis < Self::MIN.0 || millis > Self::MAX.0 { Err(TimestampOutOfRange) } else { Ok(Self(millis)) }
    }

    /// Parses a day (`2026-01-31`, its start in UTC) or an RFC 3339 time, truncated to milliseconds.
    ///
    /// # Errors
    /// [`InvalidMoment`].
    pub fn parse(text: &str) -> Result<Self, InvalidMoment> {
        let millis = match DateTime::parse_from_rfc3339(text) {
            Ok(moment) => moment.timestamp_millis(),
            Err(_) => {
                let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| InvalidMoment)?;
                day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis()
            }
        };
        Self::from_millis(millis).map_err(|_| InvalidMoment)
    }

    /// Clamps `millis` to the valid range; for clocks and stored values.
    pub const fn saturating_from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Adds milliseconds (negative to subtract), clamped to the valid range.
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self::saturating_from_millis(self.0.saturating_add(millis))
    }

    /// Milliseconds since `earlier`; negative when `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }
}

/// ISO 8601 in UTC with milliseconds, as in the exported files: `2026-11-20T07:06:34.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        formatter.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = i64::deserialize(deserializer)?;
        Self::from_millis(millis).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_displays_in_utc_with_milliseconds() {
        assert_eq!(Timestamp::MIN.to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn day_or_rfc3339_time_is_parsed() {
        for (text, millis) in [
            ("1970-01-01", 0),
            ("2026-01-31", 1_769_817_600_000),
            ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
            ("2023-11-15T00:13:20.1239+02:00", 1_700_000_000_123),
        ] {
            assert_eq!(Timestamp::parse(text), Ok(Timestamp(millis)), "{text}");
        }
        for text in
            ["", "today", "2026-02-30", "31.01.2026", "2026-01-31T09:30:00", "1969-12-31", "1700000000"]
        {
            assert_eq!(Timestamp::parse(text), Err(InvalidMoment), "{text}");
        }
    }

    #[test]
    fn timestamp_out_of_range_is_refused() {
        assert_eq!(Timestamp::from_millis(-1), Err(TimestampOutOfRange));
        assert_eq!(Timestamp::from_millis(253_402_300_800_000), Err(TimestampOutOfRange));
        assert!(serde_json::from_str::<Timestamp>("-1").is_err());
    }
}
