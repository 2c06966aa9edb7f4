//! The period of the overview, read from its URL: a name, or days in UTC, both included.

use assay_contracts::evaluations::{Comparison, MAX_POINTS};
use assay_contracts::time::{DAY_MILLIS, Timestamp};

use super::dates::{parse_day, plus_days, start_of_day, start_of_month};

/// The named periods: name in the URL, label, days.
pub(crate) const PERIODS: [(&str, &str, Days); 6] = [
    ("7d", "7 days", Days::Last(7)),
    ("28d", "28 days", Days::Last(28)),
    ("month", "This month", Days::ThisMonth),
    ("last-month", "Last month", Days::LastMonth),
    ("quarter", "Quarter", Days::Last(91)),
    ("year", "Year", Days::Last(364)),
];

/// The days of a named period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Days {
    /// A number of days, of which today is the last.
    Last(i64),
    /// The calendar month in UTC, until today.
    ThisMonth,
    /// The whole calendar month before.
    LastMonth,
}

/// The name of the period of all conversations, from the first to the last.
pub(crate) const ALL: &str = "all";

/// Most days from the first to the last chosen day. A period includes both, so that its trend has up to [`MAX_POINTS`] weeks.
const MAX_DAYS: i64 = (MAX_POINTS - 1) * 7;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Period {
    /// A name of [`PERIODS`], [`ALL`], or `None` for chosen days.
    pub(crate) name: Option<&'static str>,
    /// Half-open; `None`: everything.
    pub(crate) days: Option<(Timestamp, Timestamp)>,
}

/// Why a period cannot be read: the field, and what is wrong with it.
pub(crate) type Fault = (&'static str, &'static str);

impl Period {
    pub(crate) fn all() -> Self {
        Self { name: Some(ALL), days: None }
    }

    pub(crate) fn named(name: &str, now: Timestamp) -> Option<Self> {
        if name == ALL {
            return Some(Self::all());
        }
        let (name, _, days) = PERIODS.into_iter().find(|(known, ..)| *known == name)?;
        let end = plus_days(start_of_day(now), 1);
        let days = match days {
            Days::Last(number) => (plus_days(end, -number), end),
            Days::ThisMonth => (start_of_month(now, 0), end),
            Days::LastMonth => (start_of_month(now, 1), start_of_month(now, 0)),
        };
        Some(Self { name: Some(name), days: Some(days) })
    }

    /// The period of two date fields.
    ///
    /// # Errors
    /// The field that is wrong.
    pub(crate) fn of_days(from: &str, to: &str) -> Result<Self, Fault> {
        let from = parse_day(from).ok_or(("from", "Give a day, such as 2026-01-31."))?;
        let last = parse_day(to).ok_or(("to", "Give a day, such as 2026-01-31."))?;
        if from > last {
            return Err(("from", "The first day lies after the last."));
        }
        if last.millis_since(from) > MAX_DAYS * DAY_MILLIS {
            return Err(("from", "A period has 15 years at most; All has everything."));
        }
        Ok(Self { name: None, days: Some((from, plus_days(last, 1))) })
    }

    /// The length in days; `None`: everything.
    pub(crate) fn length_in_days(&self) -> Option<i64> {
        self.days.map(|(from, to)| to.millis_since(from) / DAY_MILLIS)
    }
}

/// Name in the URL (`beside`), label, and the comparison; the default first.
pub(crate) const COMPARISONS: [(&str, &str, Option<Comparison>); 3] = [
    ("previous", "the period before", Some(Comparison::Previous)),
    ("year", "a year before", Some(Comparison::Year)),
    ("nothing", "nothing", None),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn named_period_ends_with_today() {
        let period = Period::named("7d", at("2026-03-10T15:00:00Z")).unwrap();
        assert_eq!(period.days, Some((at("2026-03-04"), at("2026-03-11"))));
        assert_eq!(Period::named("all", at("2026-03-10")).unwrap().days, None);
        assert_eq!(Period::named("8d", at("2026-03-10")), None);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let days = |name, now| Period::named(name, at(now)).unwrap().days;
        for (now, this, last) in [
            ("2026-03-10T15:00:00Z", ("2026-03-01", "2026-03-11"), ("2026-02-01", "2026-03-01")),
            ("2026-01-01", ("2026-01-01", "2026-01-02"), ("2025-12-01", "2026-01-01")),
            ("2028-03-31T23:59:59Z", ("2028-03-01", "2028-04-01"), ("2028-02-01", "2028-03-01")),
        ] {
            assert_eq!(days("month", now), Some((at(this.0), at(this.1))), "{now}");
            assert_eq!(days("last-month", now), Some((at(last.0), at(last.1))), "{now}");
        }
        assert_eq!(Period::named("last-month", at("2028-03-31")).unwrap().length_in_days(), Some(29));
    }

    #[test]
    fn first_and_last_day_are_included() {
        let period = Period::of_days("2026-01-01", "2026-01-31").unwrap();
        assert_eq!(period.length_in_days(), Some(31));
        assert_eq!(Period::of_days("2026-01-01", "").unwrap_err().0, "to");
        assert_eq!(Period::of_days("2026-02-01", "2026-01-01").unwrap_err().0, "from");
        assert_eq!(Period::of_days("2010-01-01", "2026-01-31").unwrap_err().0, "from");
        assert!(Period::of_days("2011-10-01", "2026-01-31").is_ok());
    }
}
