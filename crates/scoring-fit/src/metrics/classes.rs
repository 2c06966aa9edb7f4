//! Resolution classes and their confusion matrix.

use assay_contracts::evaluation::ResolutionStatus;

/// From worst to best. `Partial` also stands for issues that may be solved, without a confirmation.
pub(crate) const CLASSES: [ResolutionStatus; 3] =
    [ResolutionStatus::NotResolved, ResolutionStatus::Partial, ResolutionStatus::Resolved];

/// Confusion matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confusion {
    /// Conversations by labelled class, then by predicted class, both ascending.
    pub cells: [[f64; 3]; 3],
}

impl Confusion {
    /// Counts pairs of labelled and predicted class.
    pub fn of(pairs: &[(ResolutionStatus, ResolutionStatus)]) -> Self {
        let count = |pair: (ResolutionStatus, ResolutionStatus)| {
            pairs.iter().filter(|other| **other == pair).count() as f64
        };
        Self { cells: CLASSES.map(|labelled| CLASSES.map(|predicted| count((labelled, predicted)))) }
    }

    /// Share of conversations whose predicted class is the labelled one.
    pub fn accuracy(&self) -> f64 {
        let total: f64 = self.cells.iter().flatten().sum();
        let correct: f64 = self.diagonal().sum();
        if total > 0.0 { correct / total } else { 0.0 }
    }

    /// Mean recall over the labelled classes: a rare class counts as much as others.
    pub fn macro_accuracy(&self) -> f64 {
        let totals = self.cells.iter().map(|row| row.iter().sum::<f64>());
        let shares: Vec<f64> = totals
            .zip(self.diagonal())
            .filter(|(total, _)| *total > 0.0)
            .map(|(total, correct)| correct / total)
            .collect();
        if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().enumerate().map(|(index, row)| row.get(index).copied().unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_match_hand_computation() {
        use ResolutionStatus::{NotResolved, Partial, Resolved};
        let pairs = [
            (Resolved, Resolved),
            (Resolved, Resolved),
            (Resolved, Partial),
            (Resolved, Resolved),
            (NotResolved, Resolved),
            (NotResolved, NotResolved),
        ];
        let confusion = Confusion::of(&pairs);
        assert!((confusion.accuracy() - 4.0 / 6.0).abs() < 1e-12);
        assert!((confusion.macro_accuracy() - (0.75 + 0.5) / 2.0).abs() < 1e-12);
        assert_eq!(confusion.cells, [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 3.0]]);
    }
}
