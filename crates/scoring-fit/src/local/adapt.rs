//! One model, drawn from the shipped one to labels: those of its kind of opening, each by its share.
//!
//! What moves: the intercept freely, the linear weights within their bounds, and the scale of the trees. The shipped
//! values are the prior; how strongly they hold is chosen by cross-validation, the strongest among equals.

use assay_scoring::weights_file::{LEAF_UNIT, ModelWeights};

use super::{FOLD_SEED, FOLDS};
use crate::boosting::leaf;
use crate::data::Example;
use crate::least_squares::{Coefficient, Observation, Solution, solve};
use crate::model::{Bounds, Opening, Row, spreads, standardise};
use crate::random::folds;
use crate::rounding::rounded;

/// Strengths of the prior that are tried; the first one leaves next to nothing but the intercept free.
const STRENGTHS: [f64; 8] = [100_000.0, 3_000.0, 1_000.0, 300.0, 100.0, 30.0, 10.0, 3.0];
/// The trees may count twice as much as shipped at most.
const MOST_SCALE: f64 = 2.0;
/// Added to the spread of the trees' sum, as to those of features.
const LEAST_SPREAD: f64 = 0.05;

/// What is adapted.
pub(super) struct Adapter<'a> {
    pub shipped: &'a ModelWeights,
    pub opening: Opening,
    pub signs: &'a [f64],
    pub bounds: &'a [Bounds],
}

/// The problem in standardised columns: the features, then the sum of the trees.
struct Problem {
    columns: Vec<Vec<f64>>,
    targets: Vec<f64>,
    weights: Vec<f64>,
    known: Vec<Coefficient>,
    spreads: Vec<f64>,
}

impl Adapter<'_> {
    /// The adapted model and the strength of the prior. Without a label of its kind of opening it stays as shipped.
    pub(super) fn fit(&self, examples: &[Example], labelled: &[(usize, f64)]) -> (ModelWeights, f64) {
        let rows = self.rows(examples, labelled);
        if rows.is_empty() {
            return (self.shipped.clone(), STRENGTHS[0]);
        }
        let problem = self.problem(&rows);
        let strength = problem.best_strength();
        let all: Vec<usize> = (0..rows.len()).collect();
        (self.model(&problem, &problem.solve(&all, strength)), strength)
    }

    /// The labelled examples in which the model has a share.
    fn rows<'e>(&self, examples: &'e [Example], labelled: &[(usize, f64)]) -> Vec<Row<'e>> {
        let row = |(index, target): &(usize, f64)| {
            let Example { features, detail, .. } = examples.get(*index)?;
            let weight = self.opening.share(*detail);
            (weight > 0.0).then_some(Row { features, target: *target, weight, detail: *detail })
        };
        labelled.iter().filter_map(row).collect()
    }

    fn problem(&self, rows: &[Row<'_>]) -> Problem {
        let mut spreads = spreads(rows, self.signs.len());
        let mut columns: Vec<Vec<f64>> =
            rows.iter().map(|row| standardise(row, self.signs, &spreads)).collect();
        let sums: Vec<f64> = rows.iter().map(|row| self.trees(row.features)).collect();
        let mean = sums.iter().sum::<f64>() / sums.len().max(1) as f64;
        let variance =
            sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum::<f64>() / sums.len().max(1) as f64;
        let tree_spread = variance.sqrt() + LEAST_SPREAD;
        for (column, sum) in columns.iter_mut().zip(&sums) {
            column.push(sum / tree_spread);
        }
        let share = 1.0 - self.shipped.tree_share;
        let features = self.bounds.iter().zip(&self.shipped.weights).zip(&spreads);
        let mut known: Vec<Coefficient> = features
            .map(|((bounds, weight), spread)| Coefficient {
                least: bounds.least * share * spread,
                most: bounds.most * share * spread,
                prior: weight * share * spread,
            })
            .collect();
        known.push(Coefficient { least: 0.0, most: MOST_SCALE * tree_spread, prior: tree_spread });
        spreads.push(tree_spread);
        let targets = rows.iter().map(|row| row.target).collect();
        let weights = rows.iter().map(|row| row.weight).collect();
        Problem { columns, targets, weights, known, spreads }
    }

    /// What the trees add to a score.
    fn trees(&self, features: &[f64]) -> f64 {
        let sum: i64 = self.shipped.trees.iter().map(|tree| leaf(tree, features)).sum();
        self.shipped.tree_share * self.shipped.tree_scale * LEAF_UNIT * sum as f64
    }

    fn model(&self, problem: &Problem, solution: &Solution) -> ModelWeights {
        let share = 1.0 - self.shipped.tree_share;
        let mut points: Vec<f64> = solution
            .coefficients
            .iter()
            .zip(&problem.spreads)
            .map(|(coefficient, spread)| coefficient / spread)
            .collect();
        let scale = points.pop().unwrap_or(1.0);
        let trees = self.shipped.tree_share * self.shipped.tree_intercept;
        ModelWeights {
            intercept: rounded((solution.intercept - trees) / share),
            weights: points.iter().map(|points| rounded(points / share)).collect(),
            tree_scale: rounded(self.shipped.tree_scale * scale),
            ..self.shipped.clone()
        }
    }
}

impl Problem {
    /// The strength with the least squared error on parts that were left out.
    fn best_strength(&self) -> f64 {
        let dealt = folds(self.columns.len(), FOLDS, FOLD_SEED + 1);
        let mut best: Option<(f64, f64)> = None;
        for strength in STRENGTHS {
            let mut error = 0.0;
            for fold in 0..FOLDS {
                let part = |inside: bool| -> Vec<usize> {
                    let dealt = dealt.iter().enumerate();
                    dealt.filter(|(_, dealt)| (**dealt == fold) == inside).map(|(index, _)| index).collect()
                };
                let solution = self.solve(&part(false), strength);
                error += part(true)
                    .into_iter()
                    .map(|index| {
                        let error = self.error(&solution, index);
                        self.weights.get(index).copied().unwrap_or(0.0) * error * error
                    })
                    .sum::<f64>();
            }
            if best.is_none_or(|(least, _)| error < least - 1e-9) {
                best = Some((error, strength));
            }
        }
        best.map_or(STRENGTHS[0], |(_, strength)| strength)
    }

    fn solve(&self, chosen: &[usize], strength: f64) -> Solution {
        let observations: Vec<Observation<'_>> = chosen
            .iter()
            .filter_map(|index| {
                let (values, target) = (self.columns.get(*index)?, *self.targets.get(*index)?);
                Some(Observation { values, target, weight: *self.weights.get(*index)? })
            })
            .collect();
        solve(&observations, &self.known, strength)
    }

    /// Label less what the solution says.
    fn error(&self, solution: &Solution, index: usize) -> f64 {
        let (Some(column), Some(target)) = (self.columns.get(index), self.targets.get(index)) else {
            return 0.0;
        };
        let sum: f64 =
            column.iter().zip(&solution.coefficients).map(|(value, coefficient)| value * coefficient).sum();
        target - solution.intercept - sum
    }
}
