//! AXIS: the mean of Resolution Accuracy, Interaction Effort and Handoff Smoothness, as published by Front.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audit::ResolutionStatus;
use super::score::{Confidence, Score};
use crate::named_enum::named_enum;

/// The three dimensions and the score made of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Axis {
    /// Mean of the three dimensions, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub score: Score,
    /// Band of `score`, or of `excluding_handoff` when `handoff_smoothness.applicable` is `false`; at most `mixed` when the
    /// issue is `not_resolved`.
    pub band: AxisBand,
    /// Mean of resolution accuracy and interaction effort alone, 1.0–5.0.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub excluding_handoff: Score,
    /// The dimensions.
    pub dimensions: Dimensions,
}

/// The three dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Dimensions {
    /// Was the customer's issue solved correctly, or routed to the right place?
    pub resolution_accuracy: Dimension,
    /// How little effort the customer had; a higher score is less effort.
    pub interaction_effort: Dimension,
    /// How seamless the handoff from AI to human was.
    pub handoff_smoothness: HandoffDimension,
}

/// One scored dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Dimension {
    /// 1.0–5.0, higher is better.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub score: Score,
    /// 0–1.
    #[schema(value_type = f64, minimum = 0.0, maximum = 1.0)]
    pub confidence: Confidence,
    /// One or two plain sentences.
    pub reason: String,
    /// Signals for or against the score, strongest first.
    pub signals: Vec<Signal>,
}

/// Handoff smoothness, scored by the reader or a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandoffDimension {
    /// 1.0–5.0; 5.0 when no handoff was needed.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0)]
    pub score: Score,
    /// 0–1.
    #[schema(value_type = f64, minimum = 0.0, maximum = 1.0)]
    pub confidence: Confidence,
    /// One or two plain sentences.
    pub reason: String,
    /// Signals for or against the score, strongest first.
    pub signals: Vec<Signal>,
    /// Whether a handoff was asked for, promised or made.
    pub applicable: bool,
    /// Origin of the score: `reader` or `judge`.
    pub basis: String,
}

/// A finding in the transcript that typically raises or lowers a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Signal {
    /// Stable name, upper-case snake case.
    #[schema(example = "CUSTOMER_CONFIRMED")]
    pub code: String,
    /// Typical effect on the score, in points, rounded to hundredths. Effects need not add up to the score.
    pub effect: f64,
    /// Indices into the evaluation's `evidence`.
    pub evidence: Vec<usize>,
}

named_enum!(
    /// Band of a conversation: that of its AXIS, or of `excluding_handoff` when no handoff applies; at most `mixed` when the
    /// issue is `not_resolved`.
    AxisBand {
        /// 4.5 and above.
        Excellent = "excellent",
        /// 3.5 and above.
        Good = "good",
        /// 2.5 and above.
        Mixed = "mixed",
        /// Below 2.5.
        Poor = "poor",
    }
);

impl AxisBand {
    /// The band of a conversation: that of its AXIS, or of `excluding_handoff` when no handoff applies, because the absence
    /// of a handoff must not raise it. At most `mixed` for an unresolved issue.
    pub fn of(
        score: Score,
        excluding_handoff: Score,
        is_handoff_applicable: bool,
        status: ResolutionStatus,
    ) -> Self {
        let band = Self::of_score(if is_handoff_applicable { score } else { excluding_handoff });
        match (status, band) {
            (ResolutionStatus::NotResolved, Self::Excellent | Self::Good) => Self::Mixed,
            (_, band) => band,
        }
    }

    /// The band that one score falls into.
    pub fn of_score(score: Score) -> Self {
        if score >= Score::nearest(4.5) {
            Self::Excellent
        } else if score >= Score::nearest(3.5) {
            Self::Good
        } else if score >= Score::nearest(2.5) {
            Self::Mixed
        } else {
            Self::Poor
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn band_ignores_missing_handoff_and_is_mixed_at_most_if_unresolved() {
        let band = |accuracy: f64, effort: f64, smoothness: f64, is_applicable: bool, status| {
            let [accuracy, effort, smoothness] = [accuracy, effort, smoothness].map(Score::nearest);
            let axis = Score::mean(&[accuracy, effort, smoothness]).unwrap();
            AxisBand::of(axis, Score::mean(&[accuracy, effort]).unwrap(), is_applicable, status)
        };
        use ResolutionStatus::{NotResolved, Partial, Resolved};
        let cases = [
            // AXIS is 3.6 (good), and 2.9 (mixed) without the handoff.
            (band(2.4, 3.3, 5.0, false, NotResolved), AxisBand::Mixed),
            (band(2.4, 3.3, 5.0, false, Partial), AxisBand::Mixed),
            (band(2.4, 3.3, 5.0, true, Partial), AxisBand::Good),
            (band(2.4, 3.3, 5.0, true, NotResolved), AxisBand::Mixed),
            (band(5.0, 5.0, 5.0, true, NotResolved), AxisBand::Mixed),
            (band(1.5, 2.0, 5.0, false, NotResolved), AxisBand::Poor),
            (band(4.6, 4.5, 5.0, false, Resolved), AxisBand::Excellent),
            (band(4.6, 4.5, 2.0, true, Resolved), AxisBand::Good),
        ];
        for (case, (found, expected)) in cases.into_iter().enumerate() {
            assert_eq!(found, expected, "case {case}");
        }
    }
}
