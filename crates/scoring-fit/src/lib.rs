//! Calibrates scores to a user's own reviewers, and measures the agreement of a scorer with labels.
//!
//! `fit_weights` fits weights to a user's labels, `evaluate` measures a scorer on such labels, and `corpus` benchmarks a
//! scorer on the project's corpus, where several raters rated each conversation. Everything runs in one thread, in a fixed
//! order and with fixed seeds: the same files give the same bytes.

mod corpus;
mod data;
mod describe;
mod evaluate;
mod fit_weights;
mod metrics;
mod random;
mod scored;
mod table_text;

use assay_scoring::ScorerError;

pub use self::corpus::{Band, Benchmark, ConversationSet, Corpus, CorpusPart, Estimate, Figures, benchmark};
pub use self::data::{DataError, ReviewedConversations};
pub use self::describe::describe;
pub use self::evaluate::evaluate;
pub use self::fit_weights::{Change, MIN_LABELS, WorseWeights, fit_weights};
pub use self::metrics::{Agreement, Confusion, spearman, weighted_kappa};
pub use self::scored::Dimension;

/// Fitted weights.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedWeights {
    /// Text of the weights file.
    pub text: String,
    /// Figures in plain text.
    pub report: String,
    /// Agreement before and after for each labelled score, by cross-validation.
    pub changes: Vec<Change>,
}

/// Weights could not be fitted, or a scorer could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Conversations or labels could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The engine refuses the fitted weights.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// The weights cannot be written.
    #[error("the weights cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// No conversation has both a label and a score.
    #[error(
        "no conversation has both a label and a score (labels without a conversation: {unmatched}): check that the \
         ticket ids are the same in both files"
    )]
    NothingToMeasure {
        /// Labels without a conversation.
        unmatched: usize,
    },
    /// Too few labels to fit.
    #[error(
        "{found} labelled conversations are too few, {needed} are needed (labels without a conversation: {unmatched}): \
         label more of them, or keep the shipped weights"
    )]
    TooFewLabels {
        /// Labels of the score with the most labels.
        found: usize,
        /// Required number.
        needed: usize,
        /// Labels without a conversation.
        unmatched: usize,
    },
    /// The fitted weights do not agree better with the labels than the shipped ones.
    #[error(
        "{report}\nthe adapted weights do not agree better with these labels than the shipped ones: nothing was written; \
         label more conversations, or accept them anyway (--force)"
    )]
    Worse {
        /// Figures in plain text.
        report: String,
    },
}
