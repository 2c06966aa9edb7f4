//! Adapting the shipped reading to a user's own reviewers.
//!
//! The shipped reading is the prior: few labels move it a little, many move it more. What was gained is measured by
//! cross-validation, the choice of the strength included, and weights that do not agree better than the shipped reading
//! are refused.

mod report;
mod ridge;

use assay_scoring::{ADJUSTMENT_FORMAT, Adjustment, INPUTS, Line, Scorer};

use self::report::Comparison;
use self::ridge::Row;
use crate::data::{Example, Reviewed};
use crate::metrics::Agreement;
use crate::random::folds;
use crate::scored::{Dimension, ScoredExample, score};
use crate::{FitError, Fitted};

/// Fewer labels of a score leave it as it is.
pub const FEWEST_LABELS: usize = 25;
/// Parts of the cross-validation.
const FOLDS: usize = 5;
/// Seed of the parts.
const FOLD_SEED: u64 = 29;

/// What happens to weights that do not agree better with the labels than the shipped reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorseWeights {
    /// They are refused.
    Refuse,
    /// They are given all the same.
    Accept,
}

/// What was gained in one score, on conversations left out of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Which score.
    pub dimension: Dimension,
    /// Agreement of the shipped reading.
    pub shipped: Agreement,
    /// Agreement of the adapted one.
    pub adapted: Agreement,
}

/// Adapts the built-in scorer to labels. The same files give the same bytes.
///
/// # Errors
/// When there are fewer than 25 labels of every score, or when what was fitted agrees better than the shipped reading in
/// none of them and that is to be refused. A score that does not agree better stays as it was shipped.
pub fn fit_local(reviewed: &Reviewed, worse: WorseWeights) -> Result<Fitted, FitError> {
    let scorer = Scorer::builtin()?;
    let examples: Vec<ReadExample<'_>> =
        reviewed.examples.iter().map(|example| ReadExample::of(&scorer, example)).collect();
    let most = Dimension::ALL.iter().map(|dimension| rows(&examples, *dimension).len()).max();
    let found = most.unwrap_or(0);
    if found < FEWEST_LABELS {
        return Err(FitError::TooFewLabels { found, needed: FEWEST_LABELS, unmatched: reviewed.unmatched });
    }
    let labelled: Vec<Dimension> = Dimension::ALL
        .into_iter()
        .filter(|dimension| rows(&examples, *dimension).len() >= FEWEST_LABELS)
        .collect();
    let before = score(&scorer, &reviewed.examples);
    if before.is_empty() {
        return Err(FitError::NothingToMeasure { unmatched: reviewed.unmatched });
    }
    let crossed = cross_fit(&scorer, &examples, &labelled)?;
    let comparison = Comparison::of(&before, &crossed);
    let adapted: Vec<Dimension> = labelled
        .iter()
        .copied()
        .filter(|dimension| worse == WorseWeights::Accept || comparison.is_better(*dimension))
        .collect();
    let report = comparison.text(reviewed, &before, &labelled, &adapted);
    if adapted.is_empty() {
        return Err(FitError::Worse { report });
    }
    let text = text(&fit(&scorer, &examples, &adapted))?;
    // The engine takes what is given away.
    Scorer::fitted(&text)?;
    Ok(Fitted { text, report, changes: comparison.changes })
}

/// A labelled conversation with what an adjusted score is a sum of.
#[derive(Clone, Copy)]
struct ReadExample<'e> {
    example: &'e Example,
    inputs: [f64; INPUTS],
}

impl<'e> ReadExample<'e> {
    fn of(scorer: &Scorer, example: &'e Example) -> Self {
        Self { example, inputs: scorer.adjustment_inputs(&example.conversation) }
    }
}

/// What a score is fitted on.
fn rows(examples: &[ReadExample<'_>], dimension: Dimension) -> Vec<Row> {
    let row = |read: &ReadExample<'_>| {
        Some(Row { inputs: read.inputs, target: dimension.target(&read.example.label)? })
    };
    examples.iter().filter_map(row).collect()
}

/// Fits the adapted scores to the examples; the others stay as shipped.
fn fit(scorer: &Scorer, examples: &[ReadExample<'_>], adapted: &[Dimension]) -> Adjustment {
    let line = |dimension: Dimension, index: usize| {
        if adapted.contains(&dimension) {
            ridge::fit(&rows(examples, dimension), index)
        } else {
            Line::keeping(index)
        }
    };
    Adjustment {
        format: ADJUSTMENT_FORMAT,
        reader_sha256: scorer.reader_sha256().to_owned(),
        conversations: examples.len(),
        resolution_accuracy: line(Dimension::ResolutionAccuracy, 0),
        interaction_effort: line(Dimension::InteractionEffort, 1),
        handoff_smoothness: line(Dimension::HandoffSmoothness, 2),
    }
}

/// Every example scored by the engine with weights that were fitted on the other parts.
fn cross_fit(
    scorer: &Scorer,
    examples: &[ReadExample<'_>],
    adapted: &[Dimension],
) -> Result<Vec<ScoredExample>, FitError> {
    let dealt = folds(examples.len(), FOLDS, FOLD_SEED);
    let mut scored = Vec::new();
    for fold in 0..FOLDS {
        let part = |inside: bool| -> Vec<ReadExample<'_>> {
            let dealt = examples.iter().zip(&dealt).filter(|(_, dealt)| (**dealt == fold) == inside);
            dealt.map(|(example, _)| *example).collect()
        };
        let fitted = Scorer::fitted(&text(&fit(scorer, &part(false), adapted))?)?;
        scored.extend(score(&fitted, part(true).into_iter().map(|read| read.example)));
    }
    Ok(scored)
}

/// The text of a weights file; the same weights give the same bytes.
fn text(adjustment: &Adjustment) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(adjustment)? + "\n")
}
