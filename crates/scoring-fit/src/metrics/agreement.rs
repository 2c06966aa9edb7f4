//! Agreement of scores with labels on the scale of 1 to 5.

use super::bootstrap::confidence_interval;
use super::ranks::spearman;

/// Minimum pairs.
const MIN_PAIRS: usize = 3;

/// How well scores agree with labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Pairs of score and label.
    pub count: usize,
    /// Spearman's rho.
    pub rho: f64,
    /// 95 % interval of rho, by bootstrap.
    pub interval: (f64, f64),
    /// Mean absolute error in points.
    pub error: f64,
    /// Quadratic weighted kappa of scores and labels rounded to whole points.
    pub kappa: f64,
}

impl Agreement {
    /// Agreement of pairs (label, score); `None` when there are fewer than three.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.len() < MIN_PAIRS {
            return None;
        }
        let error: f64 = pairs.iter().map(|(label, score)| (label - score).abs()).sum();
        Some(Self {
            count: pairs.len(),
            rho: spearman(pairs),
            interval: confidence_interval(pairs, spearman),
            error: error / pairs.len() as f64,
            kappa: weighted_kappa(pairs),
        })
    }
}

/// Cohen's kappa with quadratic weights of values rounded to 1–5: 1 is perfect, 0 is chance.
pub fn weighted_kappa(pairs: &[(f64, f64)]) -> f64 {
    let mut table = [[0.0; 5]; 5];
    for (label, score) in pairs {
        if let Some(cell) = table.get_mut(category(*label)).and_then(|row| row.get_mut(category(*score))) {
            *cell += 1.0;
        }
    }
    let total = pairs.len() as f64;
    let rows: Vec<f64> = table.iter().map(|row| row.iter().sum()).collect();
    let columns: Vec<f64> =
        (0..5).map(|column| table.iter().filter_map(|row| row.get(column)).sum()).collect();
    let (mut observed, mut expected) = (0.0, 0.0);
    for (row, (cells, row_sum)) in table.iter().zip(&rows).enumerate() {
        for (column, (cell, column_sum)) in cells.iter().zip(&columns).enumerate() {
            let distance = row.abs_diff(column) as f64;
            observed += distance * distance * cell;
            expected += distance * distance * row_sum * column_sum / total;
        }
    }
    // All pairs in one cell: perfect agreement, with no expected disagreement.
    if expected > 0.0 { 1.0 - observed / expected } else { 1.0 }
}

fn category(value: f64) -> usize {
    (value.clamp(1.0, 5.0) + 0.5).floor() as usize - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighted_kappa_matches_hand_computation() {
        // Labels 1, 1, 5, 5 and scores 1, 2, 5, 4. Observed: 0 + 1 + 0 + 1 = 2. Expected: half of the labels are 1, half 5;
        // scores a quarter each of 1, 2, 4, 5: 4 · (½·¼·(0+1+9+16) + ½·¼·(16+9+1+0)) = 26.
        let pairs = [(1.0, 1.2), (1.4, 2.0), (5.0, 4.5), (4.6, 4.4)];
        assert!((weighted_kappa(&pairs) - (1.0 - 2.0 / 26.0)).abs() < 1e-12);
        assert_eq!(weighted_kappa(&[(3.0, 3.0), (3.0, 3.2)]), 1.0);
        assert!(weighted_kappa(&[(1.0, 5.0), (5.0, 1.0)]) < 0.0);
    }

    #[test]
    fn error_is_mean_absolute_error() {
        let agreement = Agreement::of(&[(1.0, 1.5), (2.0, 2.0), (5.0, 4.0)]).unwrap();
        assert!((agreement.error - 0.5).abs() < 1e-12 && agreement.count == 3);
        assert_eq!(Agreement::of(&[(1.0, 1.5), (2.0, 2.0)]), None);
    }
}
