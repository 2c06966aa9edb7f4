//! Summaries of days.

use std::sync::Arc;

use assay_contracts::evaluation::{ChargeReason, Score};
use assay_contracts::evaluations::{
    ChargeCounts, DAY_MILLIS, DistributionStep, Distributions, MAX_POINTS, Period, ReasonCount, SeriesPoint,
    Step, Summary, SummaryQuery,
};
use assay_contracts::time::Timestamp;

use super::breakdown::Groups;
use super::day::{Day, Row, day_of, start_of};
use super::facets::{self, bit_of};
use super::matcher::Matcher;
use super::tally::Tally;

/// A day's number and its evaluations, in ascending order.
pub type Days = [(i64, Arc<Day>)];

/// The period has more parts than [`MAX_POINTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the period has more than {MAX_POINTS} parts: narrow it with `from` and `to`, or use `week`")]
pub struct TooManyParts;

/// Everything that is counted in one pass.
#[derive(Debug)]
struct Counts {
    total: Tally,
    /// Evaluations with a score, by score in tenths.
    tenths: [[u64; 64]; 4],
    /// By reason of the charge, then by code of its assessment.
    reasons: Vec<[u64; 8]>,
    parts: Vec<Tally>,
}

/// The summary of the days' evaluations that match, without the period beside it and the coverage.
///
/// # Errors
/// [`TooManyParts`].
pub fn summarize(query: &SummaryQuery, days: &Days) -> Result<Summary, TooManyParts> {
    let period = period_of(query, days);
    let parts = match query.step {
        Some(step) => Some(parts_of(period, step)?),
        None => None,
    };
    let matcher = Matcher::new(&query.filters);
    let mut groups = Groups::new(&query.by);
    let mut counts = Counts::new(parts.as_ref().map_or(0, Vec::len));
    let length = step_days(query.step);
    let first = day_of(period.from);
    for (day, columns) in days {
        let rows = matcher.for_day(*day, &columns.texts);
        let part = usize::try_from((day - first) / length).ok().filter(|part| *part < counts.parts.len());
        let mut tally = Tally::default();
        groups.begin_day(columns);
        for row in columns.rows().filter(|row| rows.matches(row)) {
            tally.add(&row);
            counts.add(&row);
            groups.add(&row);
        }
        counts.total.merge(&tally);
        if let Some(part) = part {
            counts.parts[part].merge(&tally);
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

/// Number of evaluations that match, and how many of them have each score in tenths of the score with `number`.
pub fn count(matcher: &Matcher, days: &Days, mut each: impl FnMut(&Row)) -> u64 {
    let mut count = 0;
    for (day, columns) in days {
        let rows = matcher.for_day(*day, &columns.texts);
        for row in columns.rows().filter(|row| rows.matches(row)) {
            count += 1;
            each(&row);
        }
    }
    count
}

fn step_days(step: Option<Step>) -> i64 {
    if step == Some(Step::Week) { 7 } else { 1 }
}

/// The period of the filter; an open end is that of the days.
fn period_of(query: &SummaryQuery, days: &Days) -> Period {
    let (from, to) = (query.filters.from, query.filters.to);
    let moment = |day: i64| Timestamp::saturating_from_millis(start_of(day));
    let from = from.or_else(|| days.first().map(|(day, _)| moment(*day))).or(to).unwrap_or(Timestamp::MIN);
    let to = to.or_else(|| days.last().map(|(day, _)| moment(day + 1))).map_or(from, |to| to.max(from));
    Period { from, to }
}

/// The parts of a period: days or weeks of UTC from its first day, cut at its ends.
fn parts_of(period: Period, step: Step) -> Result<Vec<Period>, TooManyParts> {
    let length = step_days(Some(step)) * DAY_MILLIS;
    let first = start_of(day_of(period.from));
    if period.to.as_millis() - first > MAX_POINTS * length {
        return Err(TooManyParts);
    }
    let starts =
        (0..).map(|number| first + number * length).take_while(|start| *start < period.to.as_millis());
    let moment = Timestamp::saturating_from_millis;
    let part = |start: i64| Period {
        from: moment(start).max(period.from),
        to: moment(start + length).min(period.to),
    };
    Ok(starts.map(part).collect())
}

impl Counts {
    fn new(parts: usize) -> Self {
        Self {
            total: Tally::default(),
            tenths: [[0; 64]; 4],
            reasons: vec![[0; 8]; ChargeReason::ALL.len()],
            parts: vec![Tally::default(); parts],
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

/// Eight steps of half a point; the last one with 5.0.
fn distribution(tenths: &[u64; 64]) -> Vec<DistributionStep> {
    let step = |number: u8| {
        let (min, max) = (10 + 5 * number, if number == 7 { 50 } else { 14 + 5 * number });
        let score = |tenths: u8| Score::from_tenths(i64::from(tenths)).unwrap_or(Score::MIN);
        let count = tenths[usize::from(min)..=usize::from(max)].iter().sum();
        DistributionStep { min: score(min), max: score(max), count }
    };
    (0..8).map(step).collect()
}
