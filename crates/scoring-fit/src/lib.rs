//! Fits the scorer's last step to what a user's own reviewers said, and measures how well any scorer agrees with people.
//!
//! `local` fits an adjustment to the labels of one place, `evaluate` measures a scorer on such labels, and `corpus`
//! measures one on the project's own conversations, which several readers rated. Everything is done in one thread, in a
//! fixed order and with fixed seeds: the same files give the same bytes.

mod corpus;
mod data;
mod describe;
mod evaluate;
mod local;
mod metrics;
mod random;
mod scored;
mod table_text;

use assay_scoring::ScorerError;

pub use self::corpus::{Band, Benchmark, Corpus, Estimate, Figures, Part, SetOfConversations, benchmark};
pub use self::data::{DataError, Label, Labels, Reviewed};
pub use self::describe::describe;
pub use self::evaluate::evaluate;
pub use self::local::{Change, FEWEST_LABELS, WorseWeights, fit_local};
pub use self::metrics::{Agreement, Class, Confusion, spearman, weighted_kappa};
pub use self::scored::Dimension;

/// Weights that were fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The weights file.
    pub text: String,
    /// Figures for a person to read.
    pub report: String,
    /// What was gained in each score that has labels, on conversations left out of the fit.
    pub changes: Vec<Change>,
}

/// Why weights could not be fitted, or a scorer not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Conversations or labels could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The engine refuses what was fitted.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The weights cannot be written.
    #[error("the weights cannot be written: {0}")]
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
    /// What was fitted does not agree better with the labels than the shipped reading does.
    #[error(
        "{report}\nthe adapted weights do not agree better with these labels than the shipped ones: nothing was written; \
         label more conversations, or accept them all the same (--force)"
    )]
    Worse {
        /// The figures.
        report: String,
    },
}
