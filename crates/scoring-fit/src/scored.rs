//! Scores of labelled conversations, and their agreement with the labels.

use assay_contracts::evaluation::{Dimensions, ResolutionStatus};
use assay_scoring::Scorer;

use crate::data::{Example, Label};
use crate::metrics::{Agreement, Confusion};

/// One of the three scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Whether the issue was solved correctly.
    ResolutionAccuracy,
    /// How little the customer had to do.
    InteractionEffort,
    /// How smooth the handoff to a human was.
    HandoffSmoothness,
}

impl Dimension {
    /// All of them, in the order of the inputs of weights.
    pub const ALL: [Self; 3] = [Self::ResolutionAccuracy, Self::InteractionEffort, Self::HandoffSmoothness];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResolutionAccuracy => "resolution accuracy",
            Self::InteractionEffort => "interaction effort",
            Self::HandoffSmoothness => "handoff smoothness",
        }
    }

    /// The value of this score, of three values in the order of [`Dimension::ALL`].
    pub(crate) const fn of<T: Copy>(self, values: &[T; 3]) -> T {
        match self {
            Self::ResolutionAccuracy => values[0],
            Self::InteractionEffort => values[1],
            Self::HandoffSmoothness => values[2],
        }
    }

    /// The reviewer's label.
    pub(crate) const fn label(self, label: &Label) -> Option<f64> {
        match self {
            Self::ResolutionAccuracy => label.resolution_accuracy,
            Self::InteractionEffort => label.interaction_effort,
            Self::HandoffSmoothness => label.handoff_smoothness,
        }
    }

    /// Target of the fit. A label of the resolution alone implies a rough resolution accuracy.
    pub(crate) fn target(self, label: &Label) -> Option<f64> {
        let by_class = label.resolution.filter(|_| self == Self::ResolutionAccuracy);
        self.label(label).or_else(|| {
            by_class.map(|class| match class {
                ResolutionStatus::NotResolved => 1.5,
                ResolutionStatus::Partial => 3.0,
                ResolutionStatus::Resolved => 4.5,
            })
        })
    }
}

/// Scores and resolution of a labelled conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScoredExample {
    pub label: Label,
    /// 1.0–5.0 in tenths, in the order of [`Dimension::ALL`].
    pub scores: [f64; 3],
    /// Resolution by the audit.
    pub audit: ResolutionStatus,
}

/// The three scores of an evaluation, in the order of [`Dimension::ALL`].
pub(crate) fn scores_of(dimensions: &Dimensions) -> [f64; 3] {
    [
        dimensions.resolution_accuracy.score.value(),
        dimensions.interaction_effort.score.value(),
        dimensions.handoff_smoothness.score.value(),
    ]
}

/// Scores examples; drops those without AXIS.
pub(crate) fn score<'e>(
    scorer: &Scorer,
    examples: impl IntoIterator<Item = &'e Example>,
) -> Vec<ScoredExample> {
    let scored = |example: &Example| {
        let evaluation = scorer.evaluate(&example.conversation);
        Some(ScoredExample {
            label: example.label,
            scores: scores_of(&evaluation.axis?.dimensions),
            audit: evaluation.resolution.status,
        })
    };
    examples.into_iter().filter_map(scored).collect()
}

/// Confusion matrix of labelled resolutions and those of the audit.
pub(crate) fn confusion(scored: &[ScoredExample]) -> Option<Confusion> {
    let pairs: Vec<_> =
        scored.iter().filter_map(|example| Some((example.label.resolution?, example.audit))).collect();
    (!pairs.is_empty()).then(|| Confusion::of(&pairs))
}

/// Agreement with what is `wanted`: with [`Dimension::label`], or with [`Dimension::target`], that of the fit.
pub(crate) fn agreement(
    scored: &[ScoredExample],
    dimension: Dimension,
    wanted: fn(Dimension, &Label) -> Option<f64>,
) -> Option<Agreement> {
    let pairs: Vec<(f64, f64)> = scored
        .iter()
        .filter_map(|example| Some((wanted(dimension, &example.label)?, dimension.of(&example.scores))))
        .collect();
    Agreement::of(&pairs)
}
