//! Which evaluations of an organization have arrived. They are numbered 1, 2, 3, … in the order of their commits and arrive in
//! any order; an export that waits for number n must have every one up to n (ADR 0006).

use std::collections::BTreeMap;

use assay_contracts::time::Timestamp;

/// The numbers that have arrived: all up to one, and ranges beyond it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    taken_in: i64,
    /// By the first number of each range. Neither touches another or `taken_in`.
    early: BTreeMap<i64, Early>,
}

/// A range of numbers that came before one that is smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// Its last number.
    pub last: i64,
    /// When the first of them came.
    pub since: Timestamp,
}

impl Arrivals {
    /// What is known: all up to `taken_in`, and the ranges beyond by their first number. Ranges that are not beyond it (a
    /// release that did not know of them has counted past them) say nothing any more.
    pub fn new(taken_in: i64, early: impl IntoIterator<Item = (i64, Early)>) -> Self {
        let mut arrivals = Self { taken_in, early: BTreeMap::new() };
        for (first, early) in early {
            if first > taken_in + 1 {
                arrivals.early.insert(first, early);
            } else {
                arrivals.taken_in = arrivals.taken_in.max(early.last);
            }
        }
        arrivals.close_up();
        arrivals
    }

    /// Everything up to this number has arrived, or is waited for no more.
    pub fn taken_in(&self) -> i64 {
        self.taken_in
    }

    /// The ranges that have arrived beyond it, by their first number, in order.
    pub fn early(&self) -> impl Iterator<Item = (i64, Early)> {
        self.early.iter().map(|(first, early)| (*first, *early))
    }

    /// One more has arrived. One without a number, of a release that gave none, fills the first gap: there are as many gaps as
    /// such evaluations.
    pub fn take_in(&mut self, sequence: Option<i64>, now: Timestamp) {
        let number = sequence.unwrap_or(self.taken_in + 1);
        let before = self.early.range(..=number).next_back().map(|(first, early)| (*first, *early));
        if number <= self.taken_in || before.is_some_and(|(_, early)| number <= early.last) {
            return;
        }
        let (mut first, mut range) = (number, Early { last: number, since: now });
        if let Some((before, early)) = before
            && early.last == number - 1
        {
            (first, range.since) = (before, early.since);
        }
        if let Some(behind) = self.early.remove(&(number + 1)) {
            range = Early { last: behind.last, since: range.since.min(behind.since) };
        }
        self.early.insert(first, range);
        self.close_up();
    }

    /// Waits no more for numbers before a range that has been here since before `limit`: the numbers that are given up, both
    /// ends included. What comes after all is taken in like any other.
    pub fn give_up(&mut self, limit: Timestamp) -> Option<(i64, i64)> {
        let (first, early) = self.early.first_key_value()?;
        let given_up = (self.taken_in + 1, first - 1);
        if early.since >= limit {
            return None;
        }
        self.taken_in = first - 1;
        self.close_up();
        Some(given_up)
    }

    /// Waits no more for any number up to `last`: those that are given up, both ends included, though some of them may be here.
    pub fn give_up_to(&mut self, last: i64) -> Option<(i64, i64)> {
        if last <= self.taken_in {
            return None;
        }
        let given_up = (self.taken_in + 1, last);
        self.taken_in = last;
        self.close_up();
        Some(given_up)
    }

    /// Takes in the ranges that begin no later than behind what is taken in.
    fn close_up(&mut self) {
        while let Some(entry) = self.early.first_entry()
            && *entry.key() <= self.taken_in + 1
        {
            self.taken_in = self.taken_in.max(entry.remove().last);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy as _;

    use super::*;

    const NOW: Timestamp = Timestamp::saturating_from_millis(1_000);

    fn after(numbers: &[i64]) -> (i64, Vec<(i64, i64)>) {
        let mut arrivals = Arrivals::default();
        numbers.iter().for_each(|number| arrivals.take_in(Some(*number), NOW));
        (arrivals.taken_in(), arrivals.early().map(|(first, early)| (first, early.last)).collect())
    }

    #[test]
    fn what_comes_early_waits_for_what_lies_before_it() {
        assert_eq!(after(&[1, 2, 3]), (3, vec![]));
        assert_eq!(after(&[2]), (0, vec![(2, 2)]));
        assert_eq!(after(&[2, 1]), (2, vec![]));
        assert_eq!(after(&[3, 5, 4]), (0, vec![(3, 5)]));
        assert_eq!(after(&[1, 5, 3]), (1, vec![(3, 3), (5, 5)]));
        assert_eq!(after(&[1, 5, 3, 4, 2]), (5, vec![]));
        assert_eq!(after(&[1, 3, 3, 1]), (1, vec![(3, 3)]));
    }

    #[test]
    fn one_without_a_number_fills_the_first_gap() {
        let mut arrivals = Arrivals::new(4, [(6, Early { last: 8, since: NOW })]);
        arrivals.take_in(None, NOW);
        assert_eq!(arrivals, Arrivals::new(8, []));
    }

    #[test]
    fn a_gap_is_given_up_when_what_lies_behind_it_has_been_here_for_long() {
        let mut arrivals = Arrivals::default();
        for (number, moment) in [(3, 10), (4, 30), (7, 40)] {
            arrivals.take_in(Some(number), Timestamp::saturating_from_millis(moment));
        }
        let limit = Timestamp::saturating_from_millis;
        assert_eq!(arrivals.give_up(limit(10)), None);
        assert_eq!(arrivals.give_up(limit(11)), Some((1, 2)));
        assert_eq!((arrivals.taken_in(), arrivals.give_up(limit(11))), (4, None));
        arrivals.take_in(Some(2), limit(99));
        assert_eq!((arrivals.taken_in(), arrivals.give_up(limit(99))), (4, Some((5, 6))));
        assert_eq!(arrivals, Arrivals::new(7, []));
    }

    #[test]
    fn what_never_came_is_given_up_although_nothing_came_behind_it() {
        let mut arrivals = Arrivals::new(4, [(6, Early { last: 8, since: NOW })]);
        assert_eq!(arrivals.give_up_to(4), None);
        assert_eq!(arrivals.give_up_to(7), Some((5, 7)));
        assert_eq!(arrivals, Arrivals::new(8, []));
        assert_eq!(arrivals.give_up_to(9), Some((9, 9)));
    }

    #[test]
    fn ranges_that_were_counted_past_are_forgotten() {
        let range = |first, last| (first, Early { last, since: NOW });
        assert_eq!(Arrivals::new(194, [range(105, 110)]), Arrivals::new(194, []));
        assert_eq!(
            Arrivals::new(107, [range(105, 110), range(112, 113)]),
            Arrivals::new(110, [range(112, 113)])
        );
        assert_eq!(Arrivals::new(4, [range(5, 6)]), Arrivals::new(6, []));
    }

    proptest::proptest! {
        #[test]
        fn in_whatever_order_they_come_all_are_taken_in(
            order in proptest::strategy::Just((1..=60_i64).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let mut arrivals = Arrivals::default();
            for (index, number) in order.iter().enumerate() {
                arrivals.take_in(Some(*number), NOW);
                let known = &order[..=index];
                let expected = (1..).take_while(|number| known.contains(number)).count() as i64;
                proptest::prop_assert_eq!(arrivals.taken_in(), expected);
            }
            proptest::prop_assert_eq!(arrivals, Arrivals::new(60, []));
        }
    }
}
