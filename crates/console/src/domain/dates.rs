//! Times and days on pages. Pages are rendered in UTC; the script changes times into the viewer's zone. Days of periods and
//! filters are days in UTC, as those of the summaries.

use std::fmt;

use assay_contracts::time::{DAY_MILLIS, Timestamp};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};

/// A time on a page: HTML of a `<time>` with the text in UTC, and UTC to the second in its title. It contains no text
/// from outside and needs no escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageTime {
    at: Timestamp,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// 1 Mar, 23:29
    Short,
    /// 1 Mar 2026, 23:29
    Long,
    /// 1 Mar 2026: a day in UTC, whatever the zone.
    Day,
    /// 23:29 on the day of this start, otherwise 1 Mar 2026, 23:29.
    End(Timestamp),
}

/// The format of the attributes that the script reads.
const ATTRIBUTE_FORMAT: &str = "%Y-%m-%dT%H:%M:%SZ";

impl PageTime {
    pub(crate) fn short(at: Timestamp) -> Self {
        Self { at, style: Style::Short }
    }

    /// Without the year if that is the present one.
    pub(crate) fn recent(at: Timestamp, now: Timestamp) -> Self {
        let is_this_year = utc(at).year() == utc(now).year();
        Self { at, style: if is_this_year { Style::Short } else { Style::Long } }
    }

    pub(crate) fn day(at: Timestamp) -> Self {
        Self { at, style: Style::Day }
    }

    pub(crate) fn long(at: Timestamp) -> Self {
        Self { at, style: Style::Long }
    }

    /// The end of a period that began at `from`.
    pub(crate) fn end(from: Timestamp, at: Timestamp) -> Self {
        Self { at, style: Style::End(from) }
    }
}

impl fmt::Display for PageTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = utc(self.at);
        let (name, text) = match self.style {
            Style::Short => ("short", at.format("%-d %b, %H:%M")),
            Style::Long => ("long", at.format("%-d %b %Y, %H:%M")),
            Style::Day => ("day", at.format("%-d %b %Y")),
            Style::End(from) if utc(from).date_naive() == at.date_naive() => ("end", at.format("%H:%M")),
            Style::End(_) => ("end", at.format("%-d %b %Y, %H:%M")),
        };
        let (attribute, title) = (at.format(ATTRIBUTE_FORMAT), at.format("%Y-%m-%d %H:%M:%S UTC"));
        write!(formatter, "<time datetime=\"{attribute}\" title=\"{title}\" data-style=\"{name}\"")?;
        if let Style::End(from) = self.style {
            // The script compares both days in the viewer's zone.
            write!(formatter, " data-from=\"{}\"", utc(from).format(ATTRIBUTE_FORMAT))?;
        }
        write!(formatter, ">{text}</time>")
    }
}

/// The first moment of a day in UTC, written `2026-01-31` as date fields send it.
pub(crate) fn parse_day(text: &str) -> Option<Timestamp> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Timestamp::parse(text).ok()
}

/// The day of a moment as date fields hold it: `2026-01-31`.
pub(crate) fn day_of(at: Timestamp) -> String {
    utc(at).format("%Y-%m-%d").to_string()
}

/// The days of a half-open period in words: "1 January – 31 March 2026".
pub(crate) fn format_days(from: Timestamp, to: Timestamp) -> String {
    let (first, last) = (utc(from), utc(to.plus_millis(-1).max(from)));
    let last_text = last.format("%-d %B %Y");
    if first.date_naive() == last.date_naive() {
        return last_text.to_string();
    }
    // The first day names only what differs from the last one.
    let first_format = match (first.year() == last.year(), first.month() == last.month()) {
        (true, true) => "%-d",
        (true, false) => "%-d %B",
        (false, _) => "%-d %B %Y",
    };
    format!("{} – {last_text}", first.format(first_format))
}

/// A duration, in its two largest units: "3 h 10 min", "5 d 4 h", "20 s".
pub(crate) fn format_duration(seconds: i64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut left = seconds.max(0);
    let mut parts = Vec::new();
    for (unit, length) in units {
        let (number, rest) = (left / length, left % length);
        left = rest;
        if number > 0 || !parts.is_empty() {
            parts.push((number, unit));
        }
    }
    parts.truncate(2);
    let written: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if written.is_empty() { "0 s".to_owned() } else { written.join(" ") }
}

/// The beginning of the day of a moment, in UTC.
pub(crate) fn start_of_day(at: Timestamp) -> Timestamp {
    Timestamp::saturating_from_millis(at.as_millis().div_euclid(DAY_MILLIS) * DAY_MILLIS)
}

/// The beginning of a day, moved by a number of days.
pub(crate) fn plus_days(day: Timestamp, days: i64) -> Timestamp {
    day.plus_millis(days * DAY_MILLIS)
}

/// The beginning of the month of a moment, or of one of the months before it, in UTC.
pub(crate) fn start_of_month(at: Timestamp, months_before: u32) -> Timestamp {
    let day = utc(at).date_naive();
    let first = day.with_day(1).and_then(|first| first.checked_sub_months(Months::new(months_before)));
    let midnight = first.unwrap_or(day).and_time(NaiveTime::MIN).and_utc();
    Timestamp::saturating_from_millis(midnight.timestamp_millis())
}

pub(crate) fn utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn time_has_its_zone_in_the_title() {
        let text = PageTime::short(at("2026-03-01T22:29:10Z")).to_string();
        assert_eq!(
            text,
            "<time datetime=\"2026-03-01T22:29:10Z\" title=\"2026-03-01 22:29:10 UTC\" data-style=\"short\">1 Mar, 22:29</time>"
        );
    }

    #[test]
    fn time_of_another_year_has_its_year() {
        let text = |at_text, now| PageTime::recent(at(at_text), at(now)).to_string();
        assert!(text("2026-03-01T22:29:10Z", "2026-11-25").ends_with(">1 Mar, 22:29</time>"));
        assert!(text("2025-12-31T22:29:10Z", "2026-01-01").ends_with(">31 Dec 2025, 22:29</time>"));
    }

    #[test]
    fn end_on_the_day_of_the_beginning_is_a_time_alone() {
        let end = |from, to| PageTime::end(at(from), at(to)).to_string();
        let same = end("2026-03-01T22:29:10Z", "2026-03-01T23:00:00Z");
        assert!(same.contains("data-from=\"2026-03-01T22:29:10Z\">23:00</time>"), "{same}");
        let next = end("2026-03-01T22:29:10Z", "2026-03-02T00:10:00Z");
        assert!(next.contains(">2 Mar 2026, 00:10</time>"), "{next}");
    }

    #[test]
    fn period_is_named_by_its_days() {
        let named = |from, to| format_days(at(from), at(to));
        assert_eq!(named("2026-01-01", "2026-04-01"), "1 January – 31 March 2026");
        assert_eq!(named("2025-12-31", "2026-01-02"), "31 December 2025 – 1 January 2026");
        assert_eq!(named("2026-01-01", "2026-01-02"), "1 January 2026");
        assert_eq!(named("2026-01-01", "2026-02-01"), "1 – 31 January 2026");
    }

    #[test]
    fn duration_has_its_two_largest_units() {
        let texts = [0, 20, 60, 11_400, 446_400, 86_401].map(format_duration);
        assert_eq!(texts, ["0 s", "20 s", "1 min", "3 h 10 min", "5 d 4 h", "1 d"]);
    }

    #[test]
    fn day_round_trips_through_a_date_field() {
        assert_eq!(parse_day("2026-02-30"), None);
        assert_eq!(parse_day("2026-02-28T10:00:00Z"), None);
        assert_eq!(parse_day("2026-02-28").map(day_of).as_deref(), Some("2026-02-28"));
        assert_eq!(start_of_day(at("2026-02-28T23:59:59Z")), at("2026-02-28"));
        assert_eq!(plus_days(at("2026-02-28"), 1), at("2026-03-01"));
    }

    #[test]
    fn month_begins_with_its_first_day() {
        assert_eq!(start_of_month(at("2026-03-31T23:59:59Z"), 0), at("2026-03-01"));
        assert_eq!(start_of_month(at("2026-03-31T23:59:59Z"), 1), at("2026-02-01"));
        assert_eq!(start_of_month(at("2026-01-01"), 1), at("2025-12-01"));
    }
}
