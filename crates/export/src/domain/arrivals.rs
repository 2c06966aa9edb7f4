//! Which evaluations of an organization have arrived. They are numbered 1, 2, 3, … in the order of their commits and arrive in
//! any order; an export that waits for number n must have every one up to n (ADR 0006).

use std::collections::BTreeMap;

/// The numbers that have arrived: all up to one, and ranges beyond it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    taken_in: i64,
    /// Last number of each range by its first. Neither touches another or `taken_in`.
    early: BTreeMap<i64, i64>,
}

impl Arrivals {
    /// What is known: all up to `taken_in`, and the ranges `early`, both ends included.
    pub fn new(taken_in: i64, early: impl IntoIterator<Item = (i64, i64)>) -> Self {
        Self { taken_in, early: early.into_iter().collect() }
    }

    /// Everything up to this number has arrived.
    pub fn taken_in(&self) -> i64 {
        self.taken_in
    }

    /// The ranges that have arrived beyond it, in order.
    pub fn early(&self) -> impl Iterator<Item = (i64, i64)> {
        self.early.iter().map(|(first, last)| (*first, *last))
    }

    /// One more has arrived. One without a number, of a release that gave none, fills the first gap: there are as many gaps as
    /// such evaluations.
    pub fn take_in(&mut self, sequence: Option<i64>) {
        let number = sequence.unwrap_or(self.taken_in + 1);
        let is_known = number <= self.taken_in
            || self.early.range(..=number).next_back().is_some_and(|(_, last)| number <= *last);
        if is_known {
            return;
        }
        let (mut first, mut last) = (number, number);
        if let Some((before, end)) = self.early.range(..number).next_back()
            && *end == number - 1
        {
            first = *before;
        }
        if let Some(end) = self.early.remove(&(number + 1)) {
            last = end;
        }
        if first == self.taken_in + 1 {
            self.early.remove(&first);
            self.taken_in = last;
        } else {
            self.early.insert(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[i64]) -> (i64, Vec<(i64, i64)>) {
        let mut arrivals = Arrivals::default();
        numbers.iter().for_each(|number| arrivals.take_in(Some(*number)));
        (arrivals.taken_in(), arrivals.early().collect())
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
        let mut arrivals = Arrivals::new(4, [(6, 8)]);
        arrivals.take_in(None);
        assert_eq!(arrivals, Arrivals::new(8, []));
    }

    proptest::proptest! {
        #[test]
        fn in_whatever_order_they_come_all_are_taken_in(
            order in proptest::strategy::Just((1..=60_i64).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let mut arrivals = Arrivals::default();
            for (index, number) in order.iter().enumerate() {
                arrivals.take_in(Some(*number));
                let known = &order[..=index];
                let expected = (1..).take_while(|number| known.contains(number)).count() as i64;
                proptest::prop_assert_eq!(arrivals.taken_in(), expected);
            }
            proptest::prop_assert_eq!(arrivals, Arrivals::new(60, []));
        }
    }

    use proptest::strategy::Strategy as _;
}
