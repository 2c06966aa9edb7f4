//! Labelled conversations as a scorer sees them.

use assay_contracts::evaluation::Dimensions;
use assay_scoring::Scorer;
use assay_scoring::weights_file::PerDimension;

use crate::data::{Example, Label};
use crate::metrics::{Agreement, Class, Confusion, best_thresholds};

/// What a scorer says about a labelled conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoredExample {
    pub label: Label,
    pub end: &'static str,
    /// The whole engine's scores, 1.0–5.0 in tenths.
    pub scores: PerDimension<f64>,
    /// What the models say before the guards.
    pub estimates: PerDimension<f64>,
    /// By the audit.
    pub audit: Class,
    /// By the resolution-accuracy score, where the weights have thresholds.
    pub by_score: Option<Class>,
}

/// Scores examples; those that have no AXIS are left out.
pub(crate) fn score<'e>(
    scorer: &Scorer,
    examples: impl IntoIterator<Item = &'e Example>,
) -> Vec<ScoredExample> {
    let thresholds = scorer.resolution_thresholds();
    let scored = |example: &Example| {
        let evaluation = scorer.evaluate(&example.conversation);
        let dimensions = evaluation.axis?.dimensions;
        let scores = PerDimension {
            resolution_accuracy: dimensions.resolution_accuracy.score.value(),
            interaction_effort: dimensions.interaction_effort.score.value(),
        };
        Some(ScoredExample {
            label: example.label,
            end: example.end,
            scores,
            estimates: scorer.estimate(&example.conversation),
            audit: Class::of_status(evaluation.resolution.status),
            by_score: thresholds.map(|found| Class::of_score(scores.resolution_accuracy, found)),
        })
    };
    examples.into_iter().filter_map(scored).collect()
}

/// Which of the two dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    ResolutionAccuracy,
    InteractionEffort,
}

impl Dimension {
    pub(crate) const BOTH: [Self; 2] = [Self::ResolutionAccuracy, Self::InteractionEffort];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ResolutionAccuracy => "resolution accuracy",
            Self::InteractionEffort => "interaction effort",
        }
    }

    /// The part of a pair that belongs to it.
    pub(crate) fn of<T>(self, pair: &PerDimension<T>) -> &T {
        match self {
            Self::ResolutionAccuracy => &pair.resolution_accuracy,
            Self::InteractionEffort => &pair.interaction_effort,
        }
    }

    pub(crate) const fn label(self, label: &Label) -> Option<f64> {
        match self {
            Self::ResolutionAccuracy => label.resolution_accuracy,
            Self::InteractionEffort => label.interaction_effort,
        }
    }
}

/// Agreement of the whole engine's scores.
pub(crate) fn engine_agreement(scored: &[ScoredExample], dimension: Dimension) -> Option<Agreement> {
    agreement(scored, dimension, |example| *dimension.of(&example.scores))
}

/// Agreement of the models alone.
pub(crate) fn bare_agreement(scored: &[ScoredExample], dimension: Dimension) -> Option<Agreement> {
    agreement(scored, dimension, |example| *dimension.of(&example.estimates))
}

/// Confusion of labelled classes with those that `found` gives.
pub(crate) fn confusion(
    scored: &[ScoredExample],
    found: impl Fn(&ScoredExample) -> Option<Class>,
) -> Option<Confusion> {
    let pairs: Vec<(Class, Class)> =
        scored.iter().filter_map(|example| Some((example.label.resolution?, found(example)?))).collect();
    (!pairs.is_empty()).then(|| Confusion::of(pairs))
}

/// Classes by thresholds that were chosen on the other fifths of the same examples.
pub(crate) fn crossed_confusion(scored: &[ScoredExample]) -> Option<Confusion> {
    const PARTS: usize = 5;
    let mut pairs: Vec<(Class, Class)> = Vec::new();
    for part in 0..PARTS {
        let labelled = |inside: bool| {
            let chosen = scored.iter().enumerate().filter(move |(at, _)| (at % PARTS == part) == inside);
            chosen.filter_map(|(_, example)| {
                Some((example.label.resolution?, example.scores.resolution_accuracy, 1.0))
            })
        };
        let thresholds = best_thresholds(&labelled(false).collect::<Vec<_>>());
        pairs.extend(labelled(true).map(|(class, value, _)| (class, Class::of_score(value, thresholds))));
    }
    (!pairs.is_empty()).then(|| Confusion::of(pairs))
}

fn agreement(
    scored: &[ScoredExample],
    dimension: Dimension,
    value: impl Fn(&ScoredExample) -> f64,
) -> Option<Agreement> {
    let pairs: Vec<(f64, f64)> = scored
        .iter()
        .filter_map(|example| Some((dimension.label(&example.label)?, value(example))))
        .collect();
    Agreement::of(&pairs)
}

/// The three scores of an evaluation: resolution accuracy, interaction effort, handoff smoothness.
pub(crate) fn scores_of(dimensions: &Dimensions) -> [f64; 3] {
    [
        dimensions.resolution_accuracy.score.value(),
        dimensions.interaction_effort.score.value(),
        dimensions.handoff_smoothness.score.value(),
    ]
}
