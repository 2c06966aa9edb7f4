//! Fits the weights of the scoring engine to what human reviewers said, and measures how well any weights agree with
//! them.
//!
//! A dimension has a model for brief openings and one for detailed ones; each is the mean of bounded least squares
//! (`least_squares`) and monotone boosting (`boosting`) on the engine's own features, whose signs are fixed. `shipped`
//! makes the weights that ship with the engine, `local` adapts them to the labels of one place, and `evaluate` measures
//! any of them. Everything is done in one thread, in a fixed order and with fixed seeds: the same files give the same
//! bytes.

mod boosting;
mod corpus;
mod data;
mod evaluate;
mod least_squares;
mod local;
mod metrics;
mod model;
mod random;
mod rounding;
mod scored;
mod shipped;
mod table_text;
mod write;

use assay_scoring::{LexiconError, ScorerError};

pub use self::corpus::{Band, Benchmark, Corpus, Estimate, Figures, Part, SetOfConversations, benchmark};
pub use self::data::{DataError, Label, Labels, Reviewed};
pub use self::evaluate::evaluate;
pub use self::local::{FEWEST_LABELS, LABELS_FOR_WORDS, WorseWeights, fit_local};
pub use self::metrics::{Agreement, Class, Confusion, spearman, weighted_kappa};
pub use self::shipped::fit_shipped;

/// Weights that were fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The weights file.
    pub text: String,
    /// Figures for a person to read.
    pub report: String,
}

/// Why weights could not be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Conversations or labels could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The engine's phrase lists are faulty.
    #[error("the phrase lists cannot be used: {0}")]
    Lexicon(#[from] LexiconError),
    /// The engine refuses what was fitted.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The table of rules is faulty.
    #[error("data/shipped.json cannot be read: {0}")]
    Table(serde_json::Error),
    /// The table of rules bounds a feature that there is not.
    #[error("data/shipped.json bounds the unknown feature `{0}`: correct its name or remove the bound")]
    Bounds(String),
    /// A set cannot be both fitted on and measured.
    #[error(
        "the data set {0} has no labelled conversations with split `train`, or none with another: it needs both"
    )]
    Split(String),
    /// The weights cannot be written or read.
    #[error("the weights cannot be written or read: {0}")]
    Json(#[from] serde_json::Error),
    /// There is nothing that a scorer could be compared with.
    #[error(
        "no conversation has both a label and a score (labels without a conversation: {unmatched}): check that the \
         ticket ids are the same in both files"
    )]
    NothingToMeasure {
        /// Labels without a conversation.
        unmatched: usize,
    },
    /// Too little to adapt anything to.
    #[error(
        "{found} labelled conversations are too few, {needed} are needed (labels without a conversation: {unmatched}): \
         label more of them, or keep the shipped weights"
    )]
    TooFewLabels {
        /// Conversations with a label of the dimension that has most of them.
        found: usize,
        /// How many are needed.
        needed: usize,
        /// Labels without a conversation.
        unmatched: usize,
    },
    /// What was fitted agrees less with the labels than the shipped weights do.
    #[error(
        "{report}\nthe adapted weights agree less with these labels than the shipped ones: nothing was written; label \
         more conversations, or accept them all the same (--force)"
    )]
    Worse {
        /// The figures.
        report: String,
    },
}
