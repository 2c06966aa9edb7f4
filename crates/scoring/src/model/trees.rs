//! The monotone tree ensemble, in flat arrays, and what each signal adds to it.
//!
//! Contributions are relative to nothing observed: in every tree the signals that were observed are added one after
//! the other, in the order of their codes, and what changes is theirs. By monotonicity each change has the sign of
//! the signal, and the changes add up to the tree's value exactly, because leaves are whole numbers.

use super::file::{MOST_LEAVES, SplitWeights, TreeWeights};
use crate::features::{Feature, Sign};

/// Why a tree was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Splits and leaves do not make up one tree.
    #[error("its splits and leaves do not make up one tree of at most 8 leaves")]
    Shape,
    /// A split names a feature that there is not.
    #[error("it splits on a feature that is not in the list")]
    Feature,
    /// A threshold is negative or not a number: features are never negative.
    #[error("a threshold is negative or not finite")]
    Threshold,
    /// A higher value of a feature would move the score against the feature's sign.
    #[error("it is not monotone: a feature would move the score against its sign")]
    NotMonotone,
}

/// Splits of a tree, at most.
const MOST_SPLITS: usize = MOST_LEAVES - 1;
/// Ways in which the splits of a tree can come out.
const OUTCOMES: usize = 1 << MOST_SPLITS;

/// All trees of one model.
#[derive(Debug, Default)]
pub(super) struct Ensemble {
    trees: Vec<Tree>,
    /// For each tree, by ascending signal code: the code and a bit for each split on one of its features.
    codes: Vec<(usize, u8)>,
    /// The sum of leaves where nothing was observed.
    pub zero: i64,
}

/// One tree. Its splits are asked all at once, without a branch, and what came out is looked up: a tree is walked
/// once for each signal that was observed, and walking it split by split costs three times as much.
#[derive(Debug)]
struct Tree {
    features: [u16; MOST_SPLITS],
    /// Infinite behind the last split.
    thresholds: [f64; MOST_SPLITS],
    first_code: usize,
    code_count: usize,
    /// By outcome, a bit for each split that came out high: the leaf that is reached.
    reached: [u8; OUTCOMES],
    leaves: [i64; MOST_LEAVES],
}

impl Ensemble {
    /// Checks trees and lays them out; `codes` holds the number of the signal code of each feature. A tree that is
    /// refused is named by its place, from 1.
    pub(super) fn new(
        trees: &[TreeWeights],
        features: &[Feature],
        codes: &[usize],
    ) -> Result<Self, (usize, TreeError)> {
        let mut ensemble = Self::default();
        for (index, tree) in trees.iter().enumerate() {
            check(tree, features).map_err(|reason| (index + 1, reason))?;
            ensemble.add(tree, codes);
        }
        Ok(ensemble)
    }

    /// Adds to `changes`, by code, what each signal changes; returns the sum of leaves. `values` are those of the
    /// features, in order.
    pub(super) fn add_changes(&self, values: &[f64], changes: &mut [i64]) -> i64 {
        let mut sum = 0;
        for tree in &self.trees {
            let outcome = tree.outcome(values);
            let mut leaf = tree.leaf(0);
            let mut seen = 0u8;
            let codes = self.codes.get(tree.first_code..tree.first_code + tree.code_count);
            for (code, splits) in codes.unwrap_or_default() {
                // A signal whose splits all come out low is as good as not observed.
                if outcome & splits == 0 {
                    continue;
                }
                seen |= splits;
                let next = tree.leaf(outcome & seen);
                if let Some(change) = changes.get_mut(*code) {
                    *change += next - leaf;
                }
                leaf = next;
            }
            sum += leaf;
        }
        sum
    }

    fn add(&mut self, weights: &TreeWeights, codes: &[usize]) {
        let TreeWeights(splits, leaves) = weights;
        let mut own: Vec<(usize, u8)> = Vec::new();
        let mut tree = Tree {
            features: [0; MOST_SPLITS],
            thresholds: [f64::INFINITY; MOST_SPLITS],
            first_code: self.codes.len(),
            code_count: 0,
            reached: [0; OUTCOMES],
            leaves: [0; MOST_LEAVES],
        };
        let places = tree.features.iter_mut().zip(&mut tree.thresholds);
        for (bit, ((feature, threshold), split)) in places.zip(splits).enumerate() {
            *feature = split.0 as u16;
            *threshold = split.1;
            let code = codes.get(split.0).copied().unwrap_or(0);
            match own.iter_mut().find(|(other, _)| *other == code) {
                Some((_, bits)) => *bits |= 1 << bit,
                None => own.push((code, 1 << bit)),
            }
        }
        for (place, leaf) in tree.leaves.iter_mut().zip(leaves) {
            *place = *leaf;
        }
        for (outcome, reached) in tree.reached.iter_mut().enumerate() {
            *reached = walk(splits, outcome);
        }
        own.sort_unstable();
        tree.code_count = own.len();
        self.codes.extend(own);
        self.zero += tree.leaf(0);
        self.trees.push(tree);
    }
}

impl Tree {
    /// A bit for each split whose feature exceeds its threshold.
    fn outcome(&self, values: &[f64]) -> u8 {
        let splits = self.features.iter().zip(&self.thresholds).enumerate();
        splits.fold(0, |outcome, (bit, (feature, threshold))| {
            let value = values.get(usize::from(*feature)).copied().unwrap_or(0.0);
            outcome | u8::from(value > *threshold) << bit
        })
    }

    fn leaf(&self, outcome: u8) -> i64 {
        let reached = self.reached.get(usize::from(outcome)).copied().unwrap_or(0);
        self.leaves.get(usize::from(reached)).copied().unwrap_or(0)
    }
}

/// The leaf that an outcome leads to.
fn walk(splits: &[SplitWeights], outcome: usize) -> u8 {
    let mut target = 0i64;
    while let Some((bit, split)) = usize::try_from(target).ok().and_then(|at| Some((at, splits.get(at)?))) {
        target = if outcome >> bit & 1 == 1 { split.3 } else { split.2 };
    }
    leaf_index(target) as u8
}

/// Number of a leaf from a target: −1 is the first.
fn leaf_index(target: i64) -> usize {
    usize::try_from(-1 - target).unwrap_or(usize::MAX / 2)
}

fn check(tree: &TreeWeights, features: &[Feature]) -> Result<(), TreeError> {
    let TreeWeights(splits, leaves) = tree;
    let is_small = !splits.is_empty() && leaves.len() <= MOST_LEAVES && leaves.len() == splits.len() + 1;
    // Far below what could overflow when thousands of trees are added up.
    let is_sane = leaves.iter().all(|leaf| leaf.unsigned_abs() < 1 << 32);
    if !is_small || !is_sane {
        return Err(TreeError::Shape);
    }
    let mut used = Vec::new();
    for (index, SplitWeights(feature, threshold, low, high)) in splits.iter().enumerate() {
        if *feature >= features.len().min(usize::from(u16::MAX)) {
            return Err(TreeError::Feature);
        }
        if !threshold.is_finite() || *threshold < 0.0 {
            return Err(TreeError::Threshold);
        }
        for target in [*low, *high] {
            let is_later = usize::try_from(target)
                .map_or(leaf_index(target) < leaves.len(), |next| next > index && next < splits.len());
            if !is_later || used.contains(&target) {
                return Err(TreeError::Shape);
            }
            used.push(target);
        }
    }
    check_directions(tree, features)
}

/// Every leaf on the lower side of a split must lie on the side of the sign: enough for the whole tree to be
/// monotone, and what the bounds method of boosting gives.
fn check_directions(tree: &TreeWeights, features: &[Feature]) -> Result<(), TreeError> {
    for SplitWeights(feature, _, low, high) in &tree.0 {
        let sign = features.get(*feature).map_or(Sign::Raises, |feature| feature.sign);
        let (lesser, greater) = match sign {
            Sign::Raises => (low, high),
            Sign::Lowers => (high, low),
        };
        if range(tree, *lesser).1 > range(tree, *greater).0 {
            return Err(TreeError::NotMonotone);
        }
    }
    Ok(())
}

/// Lowest and highest leaf below a target.
fn range(tree: &TreeWeights, target: i64) -> (i64, i64) {
    let split = usize::try_from(target).ok().and_then(|index| tree.0.get(index));
    let Some(SplitWeights(_, _, low, high)) = split else {
        let leaf = tree.1.get(leaf_index(target)).copied().unwrap_or(0);
        return (leaf, leaf);
    };
    let (low, high) = (range(tree, *low), range(tree, *high));
    (low.0.min(high.0), low.1.max(high.1))
}
