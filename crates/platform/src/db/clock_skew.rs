//! The difference between the clock of this process and that of its database.

use std::fmt;
use std::time::Duration;

use assay_contracts::time::Timestamp;

/// A larger skew is logged as a warning.
const NEGLIGIBLE_MILLIS: i64 = 1_000;

/// With a larger skew the clock must not decide what has expired. It is half of the shortest lease: that of events in
/// the outbox and of parked events.
const TOLERATED_MILLIS: i64 = 5_000;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSkew {
    schema: &'static str,
    ours: Timestamp,
    theirs: Timestamp,
    /// Measurement error in either direction: half of the round trip.
    uncertain_millis: i64,
}

impl ClockSkew {
    /// `theirs` was read during a query of the length `round_trip`, which began at `began` by our clock.
    #[cfg_attr(not(feature = "distributed"), expect(dead_code, reason = "SQLite has no clock"))]
    pub(super) fn measured(
        schema: &'static str,
        began: Timestamp,
        round_trip: Duration,
        theirs: Timestamp,
    ) -> Self {
        let half = i64::try_from(round_trip.as_millis() / 2).unwrap_or(i64::MAX);
        Self { schema, ours: began.plus_millis(half), theirs, uncertain_millis: half }
    }

    /// How far our clock is ahead; negative: behind.
    pub(super) fn millis(&self) -> i64 {
        self.ours.as_millis() - self.theirs.as_millis()
    }

    /// Whether times of this process can be compared with stored ones.
    pub fn is_tolerable(&self) -> bool {
        self.smallest_possible_millis() <= TOLERATED_MILLIS
    }

    pub(super) fn is_negligible(&self) -> bool {
        self.smallest_possible_millis() <= NEGLIGIBLE_MILLIS
    }

    /// The smallest possible skew: all of the round trip may have passed before, or after, the database read its clock.
    fn smallest_possible_millis(&self) -> i64 {
        self.millis().abs() - self.uncertain_millis
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, ours, theirs, .. } = self;
        let millis = self.millis();
        let (seconds, rest) = (millis.abs() / 1_000, millis.abs() % 1_000);
        let direction = if millis < 0 { "behind" } else { "ahead of" };
        write!(
            formatter,
            "the clock of this process ({ours}) is {seconds}.{rest:03} seconds {direction} that of the database of \
             `{schema}` ({theirs}): synchronise both machines (NTP)"
        )
    }
}

impl std::error::Error for ClockSkew {}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: Timestamp = Timestamp::saturating_from_millis(1_795_305_600_000);

    fn skew(millis: i64, round_trip_millis: u64) -> ClockSkew {
        let began = THEIRS.plus_millis(millis - i64::try_from(round_trip_millis / 2).unwrap());
        ClockSkew::measured("ingest", began, Duration::from_millis(round_trip_millis), THEIRS)
    }

    #[test]
    fn skew_counts_only_beyond_the_measurement_error() {
        for (millis, round_trip, is_negligible, is_tolerable) in [
            (0, 0, true, true),
            (-1_000, 0, true, true),
            (1_001, 0, false, true),
            (1_001, 10, true, true),
            (-5_000, 0, false, true),
            (5_001, 0, false, false),
            (-5_001, 0, false, false),
            (-5_500, 1_000, false, true),
            (i64::from(i32::MAX), 0, false, false),
        ] {
            let skew = skew(millis, round_trip);
            assert_eq!(skew.millis(), millis);
            assert_eq!((skew.is_negligible(), skew.is_tolerable()), (is_negligible, is_tolerable), "{skew}");
        }
    }

    #[test]
    fn message_names_both_times() {
        assert_eq!(
            skew(-6_040, 0).to_string(),
            "the clock of this process (2026-11-21T23:59:53.960Z) is 6.040 seconds behind that of the database of `ingest` \
             (2026-11-22T00:00:00.000Z): synchronise both machines (NTP)"
        );
    }
}
