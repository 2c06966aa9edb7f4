//! Was it resolved: three classes, their confusion, and the thresholds between them.

use assay_contracts::evaluation::ResolutionStatus;
use assay_scoring::weights_file::ResolutionThresholds;

/// Whether an issue was solved; the classes in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Not solved.
    NotResolved,
    /// In part, or it cannot be told.
    Partial,
    /// Solved.
    Resolved,
}

impl Class {
    /// All classes, ascending.
    pub const ALL: [Self; 3] = [Self::NotResolved, Self::Partial, Self::Resolved];

    /// By the audit of an evaluation.
    pub const fn of_status(status: ResolutionStatus) -> Self {
        match status {
            ResolutionStatus::NotResolved => Self::NotResolved,
            ResolutionStatus::Partial => Self::Partial,
            ResolutionStatus::Resolved => Self::Resolved,
        }
    }

    /// By a resolution-accuracy score.
    pub fn of_score(score: f64, thresholds: ResolutionThresholds) -> Self {
        if score < thresholds.not_resolved_below {
            Self::NotResolved
        } else if score > thresholds.resolved_above {
            Self::Resolved
        } else {
            Self::Partial
        }
    }

    /// As in labels and evaluations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotResolved => "not_resolved",
            Self::Partial => "partial",
            Self::Resolved => "resolved",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// How often each class was taken for each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Confusion {
    /// By labelled class, then by found class, both ascending; conversations, or their weights.
    pub cells: [[f64; 3]; 3],
}

impl Confusion {
    /// Of pairs of labelled and found class.
    pub fn of(pairs: impl IntoIterator<Item = (Class, Class)>) -> Self {
        let mut confusion = Self::default();
        for (labelled, found) in pairs {
            confusion.add(labelled, found, 1.0);
        }
        confusion
    }

    fn add(&mut self, labelled: Class, found: Class, weight: f64) {
        if let Some(cell) = self.cells.get_mut(labelled.index()).and_then(|row| row.get_mut(found.index())) {
            *cell += weight;
        }
    }

    /// Share of conversations whose class was found.
    pub fn accuracy(&self) -> f64 {
        let total: f64 = self.cells.iter().flatten().sum();
        let found: f64 = self.diagonal().sum();
        if total > 0.0 { found / total } else { 0.0 }
    }

    /// Mean over the classes that were labelled of the share that was found: a rare class counts as much as others.
    pub fn macro_accuracy(&self) -> f64 {
        let totals = self.cells.iter().map(|row| row.iter().sum::<f64>());
        let shares: Vec<f64> = totals
            .zip(self.diagonal())
            .filter(|(total, _)| *total > 0.0)
            .map(|(total, found)| found / total)
            .collect();
        if shares.is_empty() { 0.0 } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    fn diagonal(&self) -> impl Iterator<Item = f64> + '_ {
        self.cells.iter().enumerate().map(|(index, row)| row.get(index).copied().unwrap_or(0.0))
    }
}

/// The thresholds with the highest mean of accuracy and macro accuracy for labelled classes, scores in tenths, and weights; the lowest ones
/// among equals. They lie between tenths, so that no score meets one.
pub fn best_thresholds(labelled: &[(Class, f64, f64)]) -> ResolutionThresholds {
    let edge = |tenth: u32| f64::from(2 * tenth + 1) / 20.0;
    let mut best: Option<(f64, ResolutionThresholds)> = None;
    for low in 10..50 {
        for high in low..50 {
            let thresholds =
                ResolutionThresholds { not_resolved_below: edge(low), resolved_above: edge(high) };
            let mut confusion = Confusion::default();
            for (class, score, weight) in labelled {
                confusion.add(*class, Class::of_score(*score, thresholds), *weight);
            }
            // Plain accuracy alone would give a rare class up, that over classes alone a frequent one.
            let reached = (confusion.accuracy() + confusion.macro_accuracy()) / 2.0;
            if best.is_none_or(|(best, _)| reached > best + 1e-12) {
                best = Some((reached, thresholds));
            }
        }
    }
    best.map_or(ResolutionThresholds { not_resolved_below: 2.5, resolved_above: 3.5 }, |(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_of_a_small_table_are_those_computed_by_hand() {
        use Class::{NotResolved, Partial, Resolved};
        let pairs = [
            (Resolved, Resolved),
            (Resolved, Resolved),
            (Resolved, Partial),
            (Resolved, Resolved),
            (NotResolved, Resolved),
            (NotResolved, NotResolved),
        ];
        let confusion = Confusion::of(pairs);
        assert!((confusion.accuracy() - 4.0 / 6.0).abs() < 1e-12);
        assert!((confusion.macro_accuracy() - (0.75 + 0.5) / 2.0).abs() < 1e-12);
        assert_eq!(confusion.cells, [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 3.0]]);
    }

    #[test]
    fn thresholds_separate_what_can_be_separated() {
        let labelled = [
            (Class::NotResolved, 1.4, 1.0),
            (Class::NotResolved, 2.2, 1.0),
            (Class::Partial, 2.3, 1.0),
            (Class::Partial, 3.9, 1.0),
            (Class::Resolved, 4.0, 1.0),
        ];
        let thresholds = best_thresholds(&labelled);
        assert!((thresholds.not_resolved_below - 2.25).abs() < 1e-12, "{thresholds:?}");
        assert!((thresholds.resolved_above - 3.95).abs() < 1e-12, "{thresholds:?}");
        for (class, score, _) in labelled {
            assert_eq!(Class::of_score(score, thresholds), class);
        }
    }
}
