//! Finds the ranks of a page's rows in the columns of days. The page is then read by the start times of these rows, with the index
//! of dates, however many rows the filters select or share a value of the sort key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use assay_contracts::evaluations::{EvaluationFilters, Sort, SortKey};

use super::day::start_of;
use super::matcher::Matcher;
use super::sort_value::sort_value;
use super::summary::Days;

/// The rank of a row. A list is in ascending order of ranks, except the list by date, oldest first: it is in descending order. Rows
/// without a value come last; those with the same value are ordered by date, the newest first. Rows may share a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    value: u8,
    date: Reverse<i64>,
}

/// Which rows of a list are read from a position on, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDirection {
    /// Those after the position; without one, from the beginning of the list.
    Forwards,
    /// Those before the position; without one, from the end of the list.
    Backwards,
}

/// The nearest rows beyond a rank, in a direction of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    /// Rows of the whole list.
    pub total: u64,
    /// The ranks in the order of reading, one for each row.
    pub ranks: Vec<Rank>,
    /// No rows follow in the direction of reading.
    pub is_end: bool,
}

/// The rank of a row without a value.
const WITHOUT_VALUE: u8 = u8::MAX;

/// Above all values of sort keys.
const MAX_VALUE: u8 = 127;

impl Rank {
    /// The rank of a row with this value of the sort key.
    pub fn new(sort: Sort, value: Option<u8>, started_at: i64) -> Self {
        let value = value.map_or(WITHOUT_VALUE, |value| directed(sort, value));
        Self { value, date: Reverse(started_at) }
    }

    /// The value of the sort key.
    pub fn value(self, sort: Sort) -> Option<u8> {
        (self.value != WITHOUT_VALUE).then(|| directed(sort, self.value))
    }

    /// The rank in the reversed list.
    fn mirrored(self) -> Self {
        Self { value: u8::MAX - self.value, date: Reverse(self.date.0.saturating_neg()) }
    }

    /// When the conversation started, in milliseconds.
    pub const fn started_at(self) -> i64 {
        self.date.0
    }
}

/// The value, mirrored if the order is descending. Its own inverse.
fn directed(sort: Sort, value: u8) -> u8 {
    if sort.descending { MAX_VALUE.saturating_sub(value) } else { value }
}

/// Counts the rows that the filters select, and finds the nearest `wanted` of them beyond `position`. Rows with the rank of `position`
/// are added to these: only their ticket ids tell whether they come before or after it.
///
/// Filters that compare texts which columns lack are not applied.
pub fn rank(
    days: &Days,
    filters: &EvaluationFilters,
    sort: Sort,
    position: Option<Rank>,
    direction: ReadDirection,
    wanted: usize,
) -> Ranking {
    // By date, ranks are newest first.
    let oldest_first = sort.key == SortKey::StartedAt && !sort.descending;
    let is_mirrored = (direction == ReadDirection::Backwards) != oldest_first;
    // With it, ascending ranks are in the order of reading. Its own inverse.
    let in_direction = |rank: Rank| if is_mirrored { rank.mirrored() } else { rank };
    let position = position.map(in_direction);
    let matcher = Matcher::new(filters);
    let (mut total, mut same_rank) = (0, Vec::new());
    // The nearest rows beyond `position` that were found so far. The farthest of them is on top.
    let mut nearest: BinaryHeap<Rank> = BinaryHeap::with_capacity(wanted + 1);
    // The newest day first: later rows with the same value rarely replace others.
    for (day, columns) in days.iter().rev() {
        let (day_matcher, start) = (matcher.for_day(*day, &columns.texts), start_of(*day));
        for row in columns.rows().filter(|row| day_matcher.matches(row)) {
            total += 1;
            let value = sort_value(sort.key, row.facets, row.scores);
            let rank = in_direction(Rank::new(sort, value, start + i64::from(row.offset)));
            if position.is_some_and(|position| rank <= position) {
                if position == Some(rank) {
                    same_rank.push(rank);
                }
            } else if nearest.len() < wanted {
                nearest.push(rank);
            } else if let Some(mut farthest) = nearest.peek_mut()
                && rank < *farthest
            {
                *farthest = rank;
            }
        }
    }
    let is_end = nearest.len() < wanted;
    let mut ranks = same_rank;
    ranks.extend(nearest.into_sorted_vec());
    ranks.iter_mut().for_each(|rank| *rank = in_direction(*rank));
    Ranking { total, ranks, is_end }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_contracts::evaluation::{Confidence, Score};
    use assay_contracts::time::{DAY_MILLIS, Timestamp};

    use super::super::day::{Day, DayBuilder, PackedScores, Texts};
    use super::super::evaluation_facts::Scores;
    use super::super::facets::Facets;
    use super::ReadDirection::{Backwards, Forwards};
    use super::*;

    const AXIS: Sort = Sort { key: SortKey::Axis, descending: false };

    fn day(day: i64, rows: &[(i64, Option<i64>)]) -> (i64, Arc<Day>) {
        let texts = Texts::new("zendesk".to_owned(), None, &[]);
        let mut builder = DayBuilder::default();
        for (offset, tenths) in rows {
            let score = |tenths| Score::from_tenths(tenths).unwrap();
            let scores = tenths.map(|tenths| Scores {
                axis: score(tenths),
                resolution_accuracy: score(30),
                interaction_effort: score(30),
                handoff_smoothness: score(30),
                confidence: Confidence::from_hundredths(50).unwrap(),
            });
            let started_at = Timestamp::saturating_from_millis(day * DAY_MILLIS + offset);
            builder.push(started_at, Facets::default(), PackedScores::of(scores.as_ref()), &texts);
        }
        (day, Arc::new(builder.finish()))
    }

    fn ranked(days: &Days, sort: Sort, position: Option<Rank>, wanted: usize) -> Vec<(u8, i64)> {
        let Ranking { total, ranks, .. } =
            rank(days, &EvaluationFilters::default(), sort, position, Forwards, wanted);
        assert_eq!(total, days.iter().map(|(_, day)| day.len() as u64).sum::<u64>());
        ranks.into_iter().map(|rank| (rank.value, rank.started_at())).collect()
    }

    #[test]
    fn rows_of_one_value_come_newest_first_and_those_without_a_value_last() {
        let days = [day(0, &[(5, Some(20)), (7, None), (6, Some(10))]), day(1, &[(3, Some(20)), (1, None)])];
        let later = DAY_MILLIS;
        // The value of a rank is 255 for rows without a value, and 127 minus the score in descending order.
        let all = [(10, 6), (20, later + 3), (20, 5), (255, later + 1), (255, 7)];
        assert_eq!(ranked(&days, AXIS, None, 9), all);
        for wanted in 0..5 {
            assert_eq!(ranked(&days, AXIS, None, wanted), all[..wanted]);
        }
        let descending = Sort { descending: true, ..AXIS };
        assert_eq!(
            ranked(&days, descending, None, 4),
            [(107, later + 3), (107, 5), (117, 6), (255, later + 1)]
        );
        let first = rank(&days, &EvaluationFilters::default(), descending, None, Forwards, 4);
        assert_eq!((first.ranks[0].value(descending), first.ranks[3].value(descending)), (Some(20), None));
        assert!(!first.is_end);
        assert!(rank(&days, &EvaluationFilters::default(), descending, None, Forwards, 6).is_end);
    }

    #[test]
    fn rows_with_the_rank_of_the_position_are_added_to_those_after_it() {
        let days = [day(0, &[(5, Some(20)), (5, Some(20)), (4, Some(20)), (9, Some(20)), (1, Some(30))])];
        let position = Some(Rank::new(AXIS, Some(20), 5));
        assert_eq!(ranked(&days, AXIS, position, 1), [(20, 5), (20, 5), (20, 4)]);
        assert_eq!(ranked(&days, AXIS, position, 9), [(20, 5), (20, 5), (20, 4), (30, 1)]);
    }

    #[test]
    fn nearest_rows_before_the_position_come_first_backwards() {
        let days = [day(0, &[(5, Some(20)), (7, None), (6, Some(10))]), day(1, &[(3, Some(20)), (1, None)])];
        let before = |value, started_at, wanted| {
            let position = Some(Rank::new(AXIS, value, started_at));
            let found = rank(&days, &EvaluationFilters::default(), AXIS, position, Backwards, wanted);
            found.ranks.into_iter().map(|rank| (rank.value(AXIS), rank.started_at())).collect::<Vec<_>>()
        };
        assert_eq!(before(None, 7, 2), [(None, 7), (None, DAY_MILLIS + 1), (Some(20), 5)]);
        assert_eq!(before(Some(20), 5, 9), [(Some(20), 5), (Some(20), DAY_MILLIS + 3), (Some(10), 6)]);
    }

    #[test]
    fn lists_by_date_of_both_orders_are_read_in_both_directions() {
        let days = [day(0, &[(5, Some(20)), (7, None), (6, Some(10))]), day(1, &[(3, Some(20))])];
        let dates = |sort: Sort, position: Option<i64>, direction: ReadDirection| {
            let position = position.map(|started_at| Rank::new(sort, None, started_at));
            let found = rank(&days, &EvaluationFilters::default(), sort, position, direction, 2);
            found.ranks.into_iter().map(Rank::started_at).collect::<Vec<_>>()
        };
        let newest_first = Sort { key: SortKey::StartedAt, descending: true };
        let oldest_first = Sort { key: SortKey::StartedAt, descending: false };
        assert_eq!(dates(newest_first, None, Forwards), [DAY_MILLIS + 3, 7]);
        assert_eq!(dates(newest_first, Some(7), Forwards), [7, 6, 5]);
        assert_eq!(dates(newest_first, Some(5), Backwards), [5, 6, 7]);
        assert_eq!(dates(oldest_first, None, Forwards), [5, 6]);
        assert_eq!(dates(oldest_first, Some(6), Forwards), [6, 7, DAY_MILLIS + 3]);
        assert_eq!(dates(oldest_first, Some(7), Backwards), [7, 6, 5]);
    }
}
