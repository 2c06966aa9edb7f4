//! Monotone gradient boosting: the tree part of a model.
//!
//! Squared error, histograms of at most 64 bins, trees grown leaf by leaf at the place of the highest gain. A split is
//! allowed only when the values on its two sides respect the sign of the feature, and the middle between them bounds
//! everything below it, so that the whole tree is monotone. Single-threaded and without chance: the same examples in
//! the same order give the same trees, bit for bit.

mod bins;
mod tree;

use assay_scoring::weights_file::{LEAF_UNIT, TreeWeights};
use serde::Deserialize;

use self::bins::Binned;
use self::tree::Grower;
use crate::rounding::rounded;

/// How trees are grown.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoostingParameters {
    pub rounds: usize,
    /// Share of a tree's own best value that is added.
    pub learning_rate: f64,
    pub most_leaves: usize,
    /// Weight of the examples in a leaf, at least; the mean example weighs 1.
    pub least_weight: f64,
    /// Draws leaves to zero: so many examples that say nothing.
    pub l2: f64,
}

/// What was grown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Boosted {
    pub intercept: f64,
    pub trees: Vec<TreeWeights>,
}

/// One example, with values that are not negative.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoostingExample<'v> {
    pub values: &'v [f64],
    pub target: f64,
    pub weight: f64,
}

/// Grows trees; `signs` holds for each feature 1 when it may only raise the value, −1 when it may only lower it.
pub(crate) fn boost(
    examples: &[BoostingExample<'_>],
    signs: &[f64],
    parameters: &BoostingParameters,
) -> Boosted {
    let total: f64 = examples.iter().map(|example| example.weight).sum();
    let weights: Vec<f64> =
        examples.iter().map(|example| example.weight * examples.len() as f64 / total).collect();
    let weighted: f64 = examples.iter().map(|example| example.weight * example.target).sum();
    let intercept = rounded(weighted / total);
    let binned = Binned::of(examples, signs.len());
    let mut sums = vec![0i64; examples.len()];
    let mut trees = Vec::with_capacity(parameters.rounds);
    for _ in 0..parameters.rounds {
        let slopes: Vec<f64> = examples
            .iter()
            .zip(&sums)
            .zip(&weights)
            .map(|((example, sum), weight)| weight * (intercept + LEAF_UNIT * *sum as f64 - example.target))
            .collect();
        let grower = Grower { binned: &binned, signs, parameters, slopes: &slopes, weights: &weights };
        let Some(tree) = grower.grow(&mut sums) else {
            // Nothing is left to gain.
            break;
        };
        trees.push(tree);
    }
    Boosted { intercept, trees }
}

impl Boosted {
    /// The value for an example.
    #[cfg(test)]
    pub(crate) fn value(&self, values: &[f64]) -> f64 {
        let sum: i64 = self.trees.iter().map(|tree| leaf(tree, values)).sum();
        self.intercept + LEAF_UNIT * sum as f64
    }
}

/// The leaf that an example reaches, in whole numbers of [`LEAF_UNIT`].
pub(crate) fn leaf(tree: &TreeWeights, values: &[f64]) -> i64 {
    let mut target = 0i64;
    while let Some(split) = usize::try_from(target).ok().and_then(|index| tree.0.get(index)) {
        let value = values.get(split.0).copied().unwrap_or(0.0);
        target = if value > split.1 { split.3 } else { split.2 };
    }
    usize::try_from(-1 - target).ok().and_then(|index| tree.1.get(index)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARAMETERS: BoostingParameters =
        BoostingParameters { rounds: 30, learning_rate: 0.3, most_leaves: 8, least_weight: 2.0, l2: 1.0 };

    fn examples<'v>(values: &'v [Vec<f64>], targets: &[f64]) -> Vec<BoostingExample<'v>> {
        let pairs = values.iter().zip(targets);
        pairs.map(|(values, target)| BoostingExample { values, target: *target, weight: 1.0 }).collect()
    }

    #[test]
    fn a_step_with_the_sign_is_learnt_and_one_against_it_is_not() {
        let values: Vec<Vec<f64>> = (0..40).map(|index| vec![f64::from(index) / 10.0]).collect();
        let targets: Vec<f64> = (0..40).map(|index| if index < 20 { 1.0 } else { 3.0 }).collect();
        let raising = boost(&examples(&values, &targets), &[1.0], &PARAMETERS);
        assert!(raising.value(&[0.5]) < 1.1 && raising.value(&[3.5]) > 2.9);
        let lowering = boost(&examples(&values, &targets), &[-1.0], &PARAMETERS);
        assert!(lowering.trees.is_empty() && (lowering.value(&[3.5]) - 2.0).abs() < 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn raising_a_value_never_moves_the_result_against_the_sign(
            rows in prop::collection::vec((prop::collection::vec(0u8..12, 4), 0u8..50), 20..80),
            raised in 0usize..4,
            by in 1u8..6,
        ) {
            let signs = [1.0, -1.0, 1.0, -1.0];
            let values: Vec<Vec<f64>> =
                rows.iter().map(|(row, _)| row.iter().map(|value| f64::from(*value) / 7.0).collect()).collect();
            let targets: Vec<f64> = rows.iter().map(|(_, target)| f64::from(*target) / 10.0).collect();
            let boosted = boost(&examples(&values, &targets), &signs, &PARAMETERS);
            for row in &values {
                let mut changed = row.clone();
                changed[raised] += f64::from(by) / 5.0;
                let moved = boosted.value(&changed) - boosted.value(row);
                prop_assert!(moved * signs[raised] >= 0.0, "{row:?} -> {changed:?}: {moved}");
            }
        }

        #[test]
        fn the_same_examples_give_the_same_trees(
            rows in prop::collection::vec((prop::collection::vec(0u8..9, 3), 0u8..50), 10..40),
        ) {
            let values: Vec<Vec<f64>> =
                rows.iter().map(|(row, _)| row.iter().map(|value| f64::from(*value)).collect()).collect();
            let targets: Vec<f64> = rows.iter().map(|(_, target)| f64::from(*target) / 10.0).collect();
            let once = boost(&examples(&values, &targets), &[1.0, 1.0, -1.0], &PARAMETERS);
            prop_assert_eq!(once, boost(&examples(&values, &targets), &[1.0, 1.0, -1.0], &PARAMETERS));
        }
    }
}
