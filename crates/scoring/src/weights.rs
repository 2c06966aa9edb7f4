//! A user's weights: they fit the scores to the user's own reviewers.

use serde::{Deserialize, Serialize};

/// Format of the file that this version reads and writes.
pub const FORMAT: u32 = 3;
/// Number of inputs: the three predicted scores, and the probabilities of `resolved` and `not_resolved`.
pub const INPUTS: usize = 5;

/// Content of a weights file, written by `assay fit` and configured as `scoring.weights`: corrects the scores for the
/// difference between a user's reviewers and the raters of the corpus.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// [`FORMAT`].
    pub format: u32,
    /// SHA-256 of the reader's model that it was fitted for.
    pub reader_sha256: String,
    /// Labelled conversations that it was fitted on.
    pub conversations: usize,
    /// For resolution accuracy.
    pub resolution_accuracy: LinearModel,
    /// For interaction effort.
    pub interaction_effort: LinearModel,
    /// For handoff smoothness.
    pub handoff_smoothness: LinearModel,
}

/// An intercept and a factor for each of the [`INPUTS`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearModel {
    /// In points.
    pub intercept: f64,
    /// In points per point of a predicted score, or per unit of probability.
    pub factors: [f64; INPUTS],
}

/// Weights cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Not a weights file of `assay fit`.
    #[error("it is not a weights file of `assay fit` ({0}); fit it again with `assay fit`")]
    Syntax(#[from] serde_json::Error),
    /// Written by another version.
    #[error(
        "it has format {found}, this version of Assay reads format {FORMAT}; fit it again with `assay fit`"
    )]
    Format {
        /// Format of the file.
        found: u32,
    },
    /// Fitted for another model.
    #[error("it was fitted for the model {found}, this is {expected}; fit it again with `assay fit`")]
    Reader {
        /// SHA-256 of the model in use.
        expected: String,
        /// SHA-256 of the model in the file.
        found: String,
    },
    /// A factor or an intercept is not a number from -10 to 10.
    #[error("a factor is not a number between -10 and 10; fit it again with `assay fit`")]
    Factor,
}

impl Weights {
    /// Parses a weights file for the model with this SHA-256.
    ///
    /// # Errors
    /// When it is damaged, or made for another version or model.
    pub fn parse(text: &str, reader_sha256: &str) -> Result<Self, WeightsError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format: found } = serde_json::from_str(text)?;
        if found != FORMAT {
            return Err(WeightsError::Format { found });
        }
        let weights: Self = serde_json::from_str(text)?;
        if weights.reader_sha256 != reader_sha256 {
            let (expected, found) = (reader_sha256.to_owned(), weights.reader_sha256);
            return Err(WeightsError::Reader { expected, found });
        }
        let models = [weights.resolution_accuracy, weights.interaction_effort, weights.handoff_smoothness];
        let mut numbers = models.iter().flat_map(|model| model.factors.iter().chain([&model.intercept]));
        let is_valid = numbers.all(|number| number.abs() <= 10.0);
        if is_valid { Ok(weights) } else { Err(WeightsError::Factor) }
    }
}

impl LinearModel {
    /// The model that returns the input at this index unchanged.
    #[must_use]
    pub fn identity(index: usize) -> Self {
        let mut factors = [0.0; INPUTS];
        if let Some(factor) = factors.get_mut(index) {
            *factor = 1.0;
        }
        Self { intercept: 0.0, factors }
    }

    /// The corrected score, not limited to 1–5.
    #[must_use]
    pub fn apply(&self, inputs: &[f64; INPUTS]) -> f64 {
        self.intercept + self.factors.iter().zip(inputs).map(|(factor, input)| factor * input).sum::<f64>()
    }
}
