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
    #[error("its splits and leaves do not make up one tree of at most 16 leaves")]
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

/// All trees of one dimension.
#[derive(Debug, Default)]
pub(super) struct Ensemble {
    trees: Vec<Tree>,
    splits: Vec<Split>,
    leaves: Vec<i64>,
    /// Signal codes of each tree, ascending.
    codes: Vec<usize>,
    /// The sum of leaves where nothing was observed.
    pub zero: i64,
}

#[derive(Debug, Clone, Copy)]
struct Tree {
    first_split: usize,
    first_leaf: usize,
    first_code: usize,
    code_count: usize,
    /// The leaf where nothing was observed.
    zero: Reached,
}

#[derive(Debug, Clone, Copy)]
struct Split {
    feature: usize,
    /// The bit of the feature's code among the codes of the tree.
    code: u16,
    threshold: f64,
    low: i64,
    high: i64,
}

/// A leaf and the codes that were asked for on the way to it.
#[derive(Debug, Clone, Copy)]
struct Reached {
    leaf: i64,
    asked: u16,
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

    /// Adds to `changes`, by code, what each observed code changes; returns the sum of leaves. `observed` says by
    /// code whether any of its features is not zero.
    pub(super) fn add_changes(&self, features: &[Feature], observed: &[bool], changes: &mut [i64]) -> i64 {
        let mut sum = 0;
        for tree in &self.trees {
            let codes = self.codes.get(tree.first_code..tree.first_code + tree.code_count);
            let mut reached = tree.zero;
            let mut seen = 0u16;
            for (bit, code) in codes.unwrap_or_default().iter().enumerate() {
                if !observed.get(*code).copied().unwrap_or(false) {
                    continue;
                }
                seen |= 1 << bit;
                // A code that nothing on the way asks for cannot change where the way leads.
                if reached.asked & (1 << bit) == 0 {
                    continue;
                }
                let next = self.reach(tree, features, seen);
                if let Some(change) = changes.get_mut(*code) {
                    *change += next.leaf - reached.leaf;
                }
                reached = next;
            }
            sum += reached.leaf;
        }
        sum
    }

    fn add(&mut self, weights: &TreeWeights, codes: &[usize]) {
        let TreeWeights(splits, leaves) = weights;
        let code_of = |split: &SplitWeights| codes.get(split.0).copied().unwrap_or(0);
        let mut own: Vec<usize> = splits.iter().map(code_of).collect();
        own.sort_unstable();
        own.dedup();
        let mut tree = Tree {
            first_split: self.splits.len(),
            first_leaf: self.leaves.len(),
            first_code: self.codes.len(),
            code_count: own.len(),
            zero: Reached { leaf: 0, asked: 0 },
        };
        self.splits.extend(splits.iter().map(|split| Split {
            feature: split.0,
            code: own.binary_search(&code_of(split)).map_or(0, |bit| 1 << bit),
            threshold: split.1,
            low: split.2,
            high: split.3,
        }));
        self.leaves.extend(leaves);
        self.codes.extend(own);
        tree.zero = self.reach(&tree, &[], 0);
        self.zero += tree.zero.leaf;
        self.trees.push(tree);
    }

    /// The leaf that the features with the codes in `seen` lead to; all others count as zero.
    fn reach(&self, tree: &Tree, features: &[Feature], seen: u16) -> Reached {
        let mut asked = 0;
        let mut target = 0i64;
        while let Ok(index) = usize::try_from(target) {
            let Some(split) = self.splits.get(tree.first_split + index) else {
                break;
            };
            asked |= split.code;
            let is_seen = seen & split.code != 0;
            let value = features.get(split.feature).map_or(0.0, |feature| feature.value);
            target = if is_seen && value > split.threshold { split.high } else { split.low };
        }
        let leaf = self.leaves.get(tree.first_leaf + leaf_index(target)).copied().unwrap_or(0);
        Reached { leaf, asked }
    }
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
        if *feature >= features.len() {
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
