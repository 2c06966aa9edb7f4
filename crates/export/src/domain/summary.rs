//! Summaries of days.

use std::sync::Arc;

use assay_contracts::evaluation::{ChargeReason, Score};
use assay_contracts::evaluations::{
    ChargeCounts, DistributionStep, Distributions, EvaluationFilters, MAX_POINTS, Period, ReasonCount,
    SeriesPoint, Step, Summary, SummaryQuery,
};
use assay_contracts::time::{DAY_MILLIS, Timestamp};

use super::breakdown::Groups;
use super::day::{Day, Row, day_of, start_of};
use super::facets::{self, bit_of};
use super::matcher::{Matcher, has_origin_filter};
use super::tally::Tally;

/// A day's number and its evaluations, in ascending order.
pub type Days = [(i64, Arc<Day>)];

/// Whether the filters compare texts that one of the days lacks, so that they need rows. Those of
/// [`needs_rows`](super::matcher::needs_rows) always do.
pub fn lack_texts(days: &Days, filters: &EvaluationFilters) -> bool {
    has_origin_filter(filters) && days.iter().any(|(_, day)| day.lacks_texts())
}

/// The caller's period has more parts than [`MAX_POINTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the period has more than {MAX_POINTS} parts: narrow it with `from` and `to`, or use a longer step")]
pub struct TooManyParts;

/// Everything that is counted in one pass.
#[derive(Debug)]
struct Counts {
    total: Tally,
    /// Evaluations with a score, by number of the score, then by its tenths (6 bits).
    tenths: [[u64; 64]; 4],
    /// By reason of the charge, then by code of its assessment (3 bits).
    reasons: Vec<[u64; 8]>,
    parts: Vec<Tally>,
}

/// The summary of the days' evaluations that match, without the compared period and the coverage.
///
/// # Errors
/// [`TooManyParts`].
pub fn summarize(query: &SummaryQuery, days: &Days) -> Result<Summary, TooManyParts> {
    let period = period_of(query, days);
    let is_open = query.filters.from.is_none() || query.filters.to.is_none();
    let days_per_part = query.step.map(|step| days_per_part(period, step, is_open)).transpose()?;
    let parts = days_per_part.map(|length| parts_of(period, length));
    let matcher = Matcher::new(&query.filters);
    let mut groups = Groups::new(&query.by);
    let mut counts = Counts::new(parts.as_ref().map_or(0, Vec::len));
    let first = day_of(period.from);
    for (day, columns) in days {
        let day_matcher = matcher.for_day(*day, &columns.texts);
        let mut tally = Tally::default();
        groups.begin_day(columns);
        for row in columns.rows().filter(|row| day_matcher.matches(row)) {
            tally.add(&row);
            counts.add(&row);
            groups.add(&row);
        }
        counts.total.merge(&tally);
        let part = days_per_part.and_then(|length| usize::try_from((day - first) / length).ok());
        if let Some(part) = part.and_then(|part| counts.parts.get_mut(part)) {
            part.merge(&tally);
        }
    }
    let series = parts.map(|parts| {
        let point = |(period, tally): (Period, &Tally)| SeriesPoint { period, measures: tally.measures() };
        parts.into_iter().zip(&counts.parts).map(point).collect()
    });
    Ok(Summary {
        period,
        totals: counts.total.measures(),
        distributions: counts.distributions(),
        charge_reasons: counts.charge_reasons(),
        series,
        breakdown: groups.finish(),
        compared: None,
        coverage: None,
    })
}

/// Number of evaluations that match.
pub fn count_matches(filters: &EvaluationFilters, days: &Days) -> u64 {
    let matcher = Matcher::new(filters);
    let of_day = |(day, columns): &(i64, Arc<Day>)| {
        let day_matcher = matcher.for_day(*day, &columns.texts);
        columns.rows().filter(|row| day_matcher.matches(row)).count()
    };
    u64::try_from(days.iter().map(of_day).sum::<usize>()).unwrap_or(u64::MAX)
}

/// A period with both ends has parts of the requested step. A period that is open at an end is as long
/// as its evaluations make it: if it has too many parts, they are lengthened to as many whole weeks as needed.
fn days_per_part(period: Period, step: Step, is_open: bool) -> Result<i64, TooManyParts> {
    let first = start_of(day_of(period.from));
    let period_millis = period.to.as_millis() - first;
    let requested = step.days();
    let fits = |days: &i64| period_millis <= MAX_POINTS * days * DAY_MILLIS;
    if fits(&requested) {
        return Ok(requested);
    }
    if !is_open {
        return Err(TooManyParts);
    }
    Ok((1_i64..).map(|weeks| 7 * weeks).find(fits).unwrap_or(requested))
}

/// The period of the filter; an open end is the first or last day with evaluations.
fn period_of(query: &SummaryQuery, days: &Days) -> Period {
    let (from, to) = (query.filters.from, query.filters.to);
    let moment = |day: i64| Timestamp::saturating_from_millis(start_of(day));
    let from = from.or_else(|| days.first().map(|(day, _)| moment(*day))).or(to).unwrap_or(Timestamp::MIN);
    let to = to.or_else(|| days.last().map(|(day, _)| moment(day + 1))).map_or(from, |to| to.max(from));
    Period { from, to }
}

/// The parts of a period, counted from the start of its first UTC day. The first and the last are cut at its ends.
fn parts_of(period: Period, days_per_part: i64) -> Vec<Period> {
    let part_millis = days_per_part * DAY_MILLIS;
    let first = start_of(day_of(period.from));
    let starts =
        (0..).map(|number| first + number * part_millis).take_while(|start| *start < period.to.as_millis());
    let moment = Timestamp::saturating_from_millis;
    let part = |start: i64| Period {
        from: moment(start).max(period.from),
        to: moment(start + part_millis).min(period.to),
    };
    starts.map(part).collect()
}

impl Counts {
    fn new(part_count: usize) -> Self {
        Self {
            total: Tally::default(),
            tenths: [[0; 64]; 4],
            reasons: vec![[0; 8]; ChargeReason::ALL.len()],
            parts: vec![Tally::default(); part_count],
        }
    }

    #[inline]
    fn add(&mut self, row: &Row) {
        if row.scores.is_scored() {
            for (number, tenths) in (0..4).zip(&mut self.tenths) {
                tenths[row.scores.tenths(number) as usize] += 1;
            }
        }
        let charge = row.facets.code(facets::CHARGE) as usize;
        let mut set = row.facets.set(facets::CHARGE_REASONS);
        while set != 0 {
            if let Some(reason) = self.reasons.get_mut(set.trailing_zeros() as usize) {
                reason[charge] += 1;
            }
            set &= set - 1;
        }
    }

    fn distributions(&self) -> Distributions {
        let [axis, resolution_accuracy, interaction_effort, handoff_smoothness] =
            self.tenths.map(|tenths| distribution(&tenths));
        Distributions { axis, resolution_accuracy, interaction_effort, handoff_smoothness }
    }

    fn charge_reasons(&self) -> Vec<ReasonCount> {
        let count = |reason: &ChargeReason| {
            let by_charge = self.reasons[bit_of(*reason).trailing_zeros() as usize];
            // By code: 0 stands for no assessment.
            let [_, supported, review, disputed, not_applicable, ..] = by_charge;
            ReasonCount {
                reason: *reason,
                count: by_charge.iter().sum(),
                charges: ChargeCounts { supported, review, disputed, not_applicable },
            }
        };
        let mut counts: Vec<ReasonCount> =
            ChargeReason::ALL.iter().map(count).filter(|counted| counted.count > 0).collect();
        counts.sort_by_key(|counted| std::cmp::Reverse(counted.count));
        counts
    }
}

/// Eight steps of half a point, from 1.0 on; the last one includes 5.0.
fn distribution(tenths: &[u64; 64]) -> Vec<DistributionStep> {
    let step = |number: u8| {
        let (min, max) = (10 + 5 * number, if number == 7 { 50 } else { 14 + 5 * number });
        let score = |tenths: u8| Score::from_tenths(i64::from(tenths)).unwrap_or(Score::MIN);
        let count = tenths[usize::from(min)..=usize::from(max)].iter().sum();
        DistributionStep { min: score(min), max: score(max), count }
    };
    (0..8).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::super::day::{DayBuilder, PackedScores, Texts};
    use super::super::facets::Facets;
    use super::*;

    /// One evaluation on each of these days.
    fn days(days: &[i64]) -> Vec<(i64, Arc<Day>)> {
        let day = |day: i64| {
            let mut builder = DayBuilder::default();
            let texts = Texts::new("custom".to_owned(), None, &[]);
            let moment = Timestamp::saturating_from_millis(start_of(day));
            builder.push(moment, Facets::default(), PackedScores::default(), &texts);
            (day, Arc::new(builder.finish()))
        };
        days.iter().map(|number| day(*number)).collect()
    }

    #[test]
    fn open_period_with_too_many_parts_has_longer_ones() {
        // One conversation of 1970, and one of 2026. At most 800 parts of whole weeks: each has 28 days.
        let days = days(&[0, 20_500]);
        for (step, from) in [(Step::Day, None), (Step::Week, None), (Step::Week, Some(Timestamp::MIN))] {
            let filters = EvaluationFilters { from, ..EvaluationFilters::default() };
            let query = SummaryQuery { filters, step: Some(step), ..SummaryQuery::default() };
            let summary = summarize(&query, &days).unwrap();
            let series = summary.series.unwrap();
            assert!((700..=800).contains(&series.len()), "{}", series.len());
            assert_eq!(series.iter().map(|point| point.measures.count).sum::<u64>(), 2);
            assert_eq!((series[0].measures.count, series.last().unwrap().measures.count), (1, 1));
            let lengths = series.iter().rev().skip(1).map(|point| {
                let Period { from, to } = point.period;
                to.millis_since(from) / DAY_MILLIS
            });
            assert!(lengths.into_iter().all(|days| days == 28), "{:?}", series[0].period);
            assert!(series.windows(2).all(|pair| pair[0].period.to == pair[1].period.from));
        }
    }

    #[test]
    fn period_with_both_ends_has_parts_of_the_requested_step() {
        let parts = |days: i64, step| {
            let to = Some(Timestamp::saturating_from_millis(start_of(days)));
            let filters = EvaluationFilters { from: Some(Timestamp::MIN), to, ..Default::default() };
            let query = SummaryQuery { filters, step: Some(step), ..SummaryQuery::default() };
            summarize(&query, &[]).map(|summary| summary.series.unwrap().len())
        };
        assert_eq!((parts(800, Step::Day), parts(801, Step::Day)), (Ok(800), Err(TooManyParts)));
        assert_eq!((parts(5_600, Step::Week), parts(5_601, Step::Week)), (Ok(800), Err(TooManyParts)));
        assert_eq!((parts(5_600, Step::Quarter), parts(91, Step::Quarter)), (Ok(62), Ok(1)));
    }
}
