//! Calibration of the shipped scores to a user's own reviewers.
//!
//! The shipped scores are the prior: few labels move them a little, many move them more. The gain is measured by nested
//! cross-validation, which includes the choice of the penalty; weights that do not improve agreement are refused.

mod report;
mod ridge;

use assay_scoring::{INPUTS, LinearModel, Scorer, WEIGHTS_FORMAT, Weights};

use self::report::Comparison;
use self::ridge::Row;
use crate::data::{Example, ReviewedConversations};
use crate::metrics::Agreement;
use crate::random::split;
use crate::scored::{Dimension, ScoredExample, score};
use crate::{FitError, FittedWeights};

/// Minimum labels of a score; with fewer it stays as shipped.
pub const MIN_LABELS: usize = 25;
/// Folds of the cross-validation.
const FOLDS: usize = 5;
/// Seed of the folds.
const FOLD_SEED: u64 = 29;

/// Handling of weights that do not agree better with the labels than the shipped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorseWeights {
    /// Refuse them.
    Refuse,
    /// Return them anyway.
    Accept,
}

/// Agreement of one score before and after, by cross-validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The score.
    pub dimension: Dimension,
    /// Agreement of the shipped weights.
    pub shipped: Agreement,
    /// Agreement of the adapted weights.
    pub adapted: Agreement,
}

/// Adapts the built-in scorer to labels. The same files give the same bytes.
///
/// # Errors
/// When every score has fewer than 25 labels, when no labelled conversation has scores, or when `worse` refuses weights and
/// no score agrees better. Without `WorseWeights::Accept` a score that does not agree better stays as shipped.
pub fn fit_weights(reviewed: &ReviewedConversations, worse: WorseWeights) -> Result<FittedWeights, FitError> {
    let scorer = Scorer::builtin()?;
    let examples: Vec<FitExample<'_>> =
        reviewed.examples.iter().map(|example| FitExample::of(&scorer, example)).collect();
    let most_labels = Dimension::ALL.iter().map(|dimension| rows(&examples, *dimension).len()).max();
    let found = most_labels.unwrap_or(0);
    if found < MIN_LABELS {
        return Err(FitError::TooFewLabels { found, needed: MIN_LABELS, unmatched: reviewed.unmatched });
    }
    let labelled: Vec<Dimension> = Dimension::ALL
        .into_iter()
        .filter(|dimension| rows(&examples, *dimension).len() >= MIN_LABELS)
        .collect();
    let shipped = score(&scorer, &reviewed.examples);
    if shipped.is_empty() {
        return Err(FitError::NothingToMeasure { unmatched: reviewed.unmatched });
    }
    let cross_validated = cross_fit(&scorer, &examples, &labelled)?;
    let comparison = Comparison::of(&shipped, &cross_validated);
    let adapted: Vec<Dimension> = labelled
        .iter()
        .copied()
        .filter(|dimension| worse == WorseWeights::Accept || comparison.is_better(*dimension))
        .collect();
    let report = comparison.text(reviewed, &shipped, &labelled, &adapted);
    if adapted.is_empty() {
        return Err(FitError::Worse { report });
    }
    let text = to_json(&fit(&scorer, &examples, &adapted))?;
    // The engine must accept the weights.
    scorer.with_weights(&text)?;
    Ok(FittedWeights { text, report, changes: comparison.changes })
}

/// A labelled conversation with the inputs of the weights.
#[derive(Clone, Copy)]
struct FitExample<'e> {
    example: &'e Example,
    inputs: [f64; INPUTS],
}

impl<'e> FitExample<'e> {
    fn of(scorer: &Scorer, example: &'e Example) -> Self {
        Self { example, inputs: scorer.weights_inputs(&example.conversation) }
    }
}

/// Training rows of a score.
fn rows(examples: &[FitExample<'_>], dimension: Dimension) -> Vec<Row> {
    let row = |fit_example: &FitExample<'_>| {
        Some(Row { inputs: fit_example.inputs, target: dimension.target(&fit_example.example.label)? })
    };
    examples.iter().filter_map(row).collect()
}

/// Fits the adapted scores to the examples; the others stay as shipped.
fn fit(scorer: &Scorer, examples: &[FitExample<'_>], adapted: &[Dimension]) -> Weights {
    let model = |dimension: Dimension, index: usize| {
        if adapted.contains(&dimension) {
            ridge::fit(&rows(examples, dimension), index)
        } else {
            LinearModel::identity(index)
        }
    };
    Weights {
        format: WEIGHTS_FORMAT,
        reader_sha256: scorer.reader_sha256().to_owned(),
        conversations: examples.len(),
        resolution_accuracy: model(Dimension::ResolutionAccuracy, 0),
        interaction_effort: model(Dimension::InteractionEffort, 1),
        handoff_smoothness: model(Dimension::HandoffSmoothness, 2),
    }
}

/// Scores every example with weights that were fitted on the other folds.
fn cross_fit(
    scorer: &Scorer,
    examples: &[FitExample<'_>],
    adapted: &[Dimension],
) -> Result<Vec<ScoredExample>, FitError> {
    let mut scored = Vec::new();
    for (others, fold) in split(examples, FOLDS, FOLD_SEED) {
        let fitted = scorer.clone().with_weights(&to_json(&fit(scorer, &others, adapted))?)?;
        scored.extend(score(&fitted, fold.into_iter().map(|fit_example| fit_example.example)));
    }
    Ok(scored)
}

/// Serialises a weights file; the same weights give the same bytes.
fn to_json(weights: &Weights) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(weights)? + "\n")
}
