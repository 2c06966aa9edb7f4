//! Tracks which evaluation sequences of an organization have arrived. Evaluations are numbered 1, 2, 3, … in commit order and
//! arrive in any order; an export with target n needs every sequence up to n (ADR 6).

use std::collections::BTreeMap;

use assay_contracts::time::Timestamp;

/// The watermark, up to which all sequences have arrived, and the out-of-order ranges beyond it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SequenceTracker {
    watermark: i64,
    /// By first sequence. Ranges do not touch each other or the watermark.
    out_of_order: BTreeMap<i64, OutOfOrderRange>,
}

/// A contiguous range of sequences beyond the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrderRange {
    /// Last sequence, inclusive.
    pub last: i64,
    /// Arrival of its earliest event.
    pub since: Timestamp,
}

impl SequenceTracker {
    /// Restores a stored state.
    pub fn new(watermark: i64, out_of_order: impl IntoIterator<Item = (i64, OutOfOrderRange)>) -> Self {
        let mut tracker = Self { watermark, out_of_order: out_of_order.into_iter().collect() };
        tracker.advance();
        tracker
    }

    /// All sequences up to this one have arrived or were skipped.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// The ranges beyond the watermark, by first sequence, in order.
    pub fn out_of_order(&self) -> impl Iterator<Item = (i64, OutOfOrderRange)> {
        self.out_of_order.iter().map(|(first, range)| (*first, *range))
    }

    /// Records an arrival; a second one of the same sequence changes nothing.
    pub fn record(&mut self, sequence: i64, now: Timestamp) {
        let previous =
            self.out_of_order.range(..=sequence).next_back().map(|(first, range)| (*first, *range));
        if sequence <= self.watermark || previous.is_some_and(|(_, range)| sequence <= range.last) {
            return;
        }
        let (mut first, mut range) = (sequence, OutOfOrderRange { last: sequence, since: now });
        if let Some((previous_first, previous_range)) = previous
            && previous_range.last == sequence - 1
        {
            (first, range.since) = (previous_first, previous_range.since);
        }
        if let Some(next) = self.out_of_order.remove(&(sequence + 1)) {
            range = OutOfOrderRange { last: next.last, since: range.since.min(next.since) };
        }
        self.out_of_order.insert(first, range);
        self.advance();
    }

    /// Skips the first gap if the range after it arrived before `cutoff`; returns the skipped sequences, inclusive. A late
    /// arrival of a skipped sequence is ignored.
    pub fn skip_gap(&mut self, cutoff: Timestamp) -> Option<(i64, i64)> {
        let (first, range) = self.out_of_order.first_key_value()?;
        let skipped = (self.watermark + 1, first - 1);
        if range.since >= cutoff {
            return None;
        }
        self.watermark = first - 1;
        self.advance();
        Some(skipped)
    }

    /// Raises the watermark to `last`; returns the skipped sequences, inclusive, of which some may have arrived.
    pub fn skip_to(&mut self, last: i64) -> Option<(i64, i64)> {
        if last <= self.watermark {
            return None;
        }
        let skipped = (self.watermark + 1, last);
        self.watermark = last;
        self.advance();
        Some(skipped)
    }

    /// The sequences of an inclusive range that have not arrived, as inclusive ranges.
    pub fn gaps(&self, (first, last): (i64, i64)) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        let mut next = first.max(self.watermark + 1);
        for (start, range) in self.out_of_order() {
            if next < start && next <= last {
                gaps.push((next, (start - 1).min(last)));
            }
            next = next.max(range.last + 1);
        }
        if next <= last {
            gaps.push((next, last));
        }
        gaps
    }

    /// Raises the watermark over the ranges that adjoin it.
    fn advance(&mut self) {
        while let Some(entry) = self.out_of_order.first_entry()
            && *entry.key() <= self.watermark + 1
        {
            self.watermark = self.watermark.max(entry.remove().last);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy as _;

    use super::*;

    const NOW: Timestamp = Timestamp::saturating_from_millis(1_000);

    fn state_after(numbers: &[i64]) -> (i64, Vec<(i64, i64)>) {
        let mut tracker = SequenceTracker::default();
        numbers.iter().for_each(|number| tracker.record(*number, NOW));
        (tracker.watermark(), tracker.out_of_order().map(|(first, range)| (first, range.last)).collect())
    }

    #[test]
    fn watermark_waits_for_gaps() {
        assert_eq!(state_after(&[1, 2, 3]), (3, vec![]));
        assert_eq!(state_after(&[2]), (0, vec![(2, 2)]));
        assert_eq!(state_after(&[2, 1]), (2, vec![]));
        assert_eq!(state_after(&[3, 5, 4]), (0, vec![(3, 5)]));
        assert_eq!(state_after(&[1, 5, 3]), (1, vec![(3, 3), (5, 5)]));
        assert_eq!(state_after(&[1, 5, 3, 4, 2]), (5, vec![]));
        assert_eq!(state_after(&[1, 3, 3, 1]), (1, vec![(3, 3)]));
    }

    #[test]
    fn gap_is_skipped_when_the_range_after_it_is_old() {
        let mut tracker = SequenceTracker::default();
        for (number, millis) in [(3, 10), (4, 30), (7, 40)] {
            tracker.record(number, Timestamp::saturating_from_millis(millis));
        }
        let moment = Timestamp::saturating_from_millis;
        assert_eq!(tracker.skip_gap(moment(10)), None);
        assert_eq!(tracker.skip_gap(moment(11)), Some((1, 2)));
        assert_eq!((tracker.watermark(), tracker.skip_gap(moment(11))), (4, None));
        tracker.record(2, moment(99));
        assert_eq!((tracker.watermark(), tracker.skip_gap(moment(99))), (4, Some((5, 6))));
        assert_eq!(tracker, SequenceTracker::new(7, []));
    }

    #[test]
    fn skip_to_needs_no_later_arrival() {
        let mut tracker = SequenceTracker::new(4, [(6, OutOfOrderRange { last: 8, since: NOW })]);
        assert_eq!(tracker.skip_to(4), None);
        assert_eq!(tracker.skip_to(7), Some((5, 7)));
        assert_eq!(tracker, SequenceTracker::new(8, []));
        assert_eq!(tracker.skip_to(9), Some((9, 9)));
    }

    #[test]
    fn gaps_are_what_has_not_arrived() {
        let range = |first, last| (first, OutOfOrderRange { last, since: NOW });
        let tracker = SequenceTracker::new(4, [range(6, 8), range(11, 11)]);
        type Range = (i64, i64);
        let cases: [(Range, &[Range]); 7] = [
            ((1, 4), &[]),
            ((1, 5), &[(5, 5)]),
            ((6, 8), &[]),
            ((5, 9), &[(5, 5), (9, 9)]),
            ((7, 9), &[(9, 9)]),
            ((5, 12), &[(5, 5), (9, 10), (12, 12)]),
            ((13, 15), &[(13, 15)]),
        ];
        for (range, gaps) in cases {
            assert_eq!(tracker.gaps(range), gaps, "{range:?}");
        }
    }

    #[test]
    fn ranges_at_or_below_the_watermark_are_merged() {
        let range = |first, last| (first, OutOfOrderRange { last, since: NOW });
        assert_eq!(SequenceTracker::new(194, [range(105, 110)]), SequenceTracker::new(194, []));
        assert_eq!(
            SequenceTracker::new(107, [range(105, 110), range(112, 113)]),
            SequenceTracker::new(110, [range(112, 113)])
        );
        assert_eq!(SequenceTracker::new(4, [range(5, 6)]), SequenceTracker::new(6, []));
    }

    proptest::proptest! {
        #[test]
        fn watermark_is_independent_of_arrival_order(
            order in proptest::strategy::Just((1..=60_i64).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let mut tracker = SequenceTracker::default();
            for (index, number) in order.iter().enumerate() {
                tracker.record(*number, NOW);
                let known = &order[..=index];
                let expected = (1..).take_while(|number| known.contains(number)).count() as i64;
                proptest::prop_assert_eq!(tracker.watermark(), expected);
            }
            proptest::prop_assert_eq!(tracker, SequenceTracker::new(60, []));
        }
    }
}
