//! The weights file, format 2: everything that was fitted, with what it was fitted for and on.
//!
//! Reader and writer share these types. Numbers are rounded before they are written, to at most
//! [`DECIMALS`] places, so that reading a file gives back exactly what was fitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format that this version reads and writes.
pub const FORMAT: u64 = 2;
/// Places behind the decimal point of weights, thresholds and intercepts.
pub const DECIMALS: u32 = 5;
/// A leaf is written as a whole number of this many points: sums of leaves are exact.
pub const LEAF_UNIT: f64 = 1e-5;
/// Leaves of a tree, at most.
pub const MOST_LEAVES: usize = 8;
/// Share of the wording in a score, at most.
pub const MOST_WORDING_SHARE: f64 = 1.0 / 3.0;

/// A whole weights file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsFile {
    /// [`FORMAT`].
    pub format: u64,
    /// [`crate::SCORER_VERSION`] of the engine whose features were seen.
    pub scorer_version: String,
    /// SHA-256 of the phrase lists that the features were read with, lower-case hexadecimal.
    pub lexicon_sha256: String,
    /// Name and sign (1 or −1) of every feature, in the order of all other lists.
    pub features: Vec<(String, i8)>,
    /// The models of both dimensions.
    pub dimensions: PerDimension<Mixture>,
    /// By end state: share of conversations that were scored within one point of human raters.
    pub agreement: BTreeMap<String, PerDimension<f64>>,
    /// Where a resolution-accuracy score says that the issue was solved, or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionThresholds>,
    /// What the words themselves add; only in files that were fitted for one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<WordingWeights>,
    /// How the file was made.
    pub manifest: Manifest,
}

/// One thing for each dimension that is scored by a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerDimension<T> {
    /// Was the issue solved correctly.
    pub resolution_accuracy: T,
    /// How little the customer had to do.
    pub interaction_effort: T,
}

/// A dimension's two models: `(1 − detail) · brief + detail · detailed`, where `detail` is that of the customer's
/// opening ([`crate::Features::detail`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixture {
    /// For conversations that open with a request in a few words.
    pub brief: ModelWeights,
    /// For conversations that open with a described problem.
    pub detailed: ModelWeights,
}

/// One model: `(1 − tree_share) · linear + tree_share · trees`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelWeights {
    /// The linear model where nothing was observed, in points.
    pub intercept: f64,
    /// Points by which one unit of each feature moves the linear model; never negative, the sign is the feature's.
    pub weights: Vec<f64>,
    /// Share of the trees in the score, 0–1.
    pub tree_share: f64,
    /// What the leaves are added to, in points.
    pub tree_intercept: f64,
    /// Factor of the sum of leaves; never negative.
    pub tree_scale: f64,
    /// The trees.
    pub trees: Vec<TreeWeights>,
}

/// One tree: its splits, the root first, and its leaves in whole numbers of [`LEAF_UNIT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeWeights(pub Vec<SplitWeights>, pub Vec<i64>);

/// A split: feature, threshold, where values up to the threshold go, where higher ones go.
///
/// A target is the index of a later split, or −1 for the first leaf, −2 for the second, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SplitWeights(pub usize, pub f64, pub i64, pub i64);

/// Where a resolution-accuracy score says that the issue was solved, or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolutionThresholds {
    /// Scores below it: not resolved.
    pub not_resolved_below: f64,
    /// Scores above it: resolved. Not lower than the other one.
    pub resolved_above: f64,
}

/// Weights of hashed words and pairs of words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordingWeights {
    /// Words are hashed into 2^bits buckets.
    pub bits: u32,
    /// The heads; `None` where words did not help.
    pub heads: PerDimension<Option<WordingHead>>,
}

/// What words add to one dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordingHead {
    /// Factor of the sum, above 0 and at most [`MOST_WORDING_SHARE`].
    pub share: f64,
    /// Bucket and weight, buckets ascending.
    pub weights: Vec<(u32, f64)>,
}

/// How the file was made: enough to make it again. Without dates, so that the same data give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// In a sentence, for readers.
    pub about: String,
    /// The data, in the order of their names.
    pub data: Vec<DataEntry>,
    /// Parameters and seeds of the fit, by name.
    pub parameters: BTreeMap<String, f64>,
    /// What was measured, by name.
    pub figures: BTreeMap<String, f64>,
}

/// A data set that was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataEntry {
    /// Name of the data set.
    pub name: String,
    /// Conversations that weights were fitted on.
    pub fitted: usize,
    /// Conversations that were kept back for measuring.
    pub kept_back: usize,
    /// SHA-256 of the file of conversations as it was read.
    pub conversations_sha256: String,
    /// SHA-256 of the file of labels as it was read.
    pub labels_sha256: String,
}

impl<T> PerDimension<T> {
    /// The same for both.
    pub fn map<U>(&self, mut change: impl FnMut(&T) -> U) -> PerDimension<U> {
        PerDimension {
            resolution_accuracy: change(&self.resolution_accuracy),
            interaction_effort: change(&self.interaction_effort),
        }
    }
}
