//! From features to scores: a sign-constrained linear model, then guards that no weight can outvote.

mod guards;
mod weights;

use assay_contracts::evaluation::Score;

pub(crate) use self::guards::{Adjustment, Guards};
pub(crate) use self::weights::Weights;
pub use self::weights::WeightsError;

use crate::features::Feature;

/// The two dimensions that the linear model scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinearDimension {
    ResolutionAccuracy,
    InteractionEffort,
}

/// A dimension's score and how it came about; the parts add up to the score.
#[derive(Debug)]
pub(crate) struct Scored {
    /// 1.0–5.0 in tenths.
    pub score: Score,
    /// What features moved, by signal code, in order of first appearance.
    pub contributions: Vec<(&'static str, f64)>,
    /// What guards moved.
    pub adjustments: Vec<Adjustment>,
}

impl Weights {
    /// Scores one dimension.
    pub(crate) fn score(
        &self,
        dimension: LinearDimension,
        features: &[Feature],
        guards: &Guards<'_, '_>,
    ) -> Scored {
        let linear = self.of(dimension);
        let mut contributions: Vec<(&'static str, f64)> = Vec::new();
        let mut value = linear.intercept;
        for (feature, weight) in features.iter().zip(&linear.weights) {
            let effect = feature.sign.factor() * weight * feature.value;
            value += effect;
            match contributions.iter_mut().find(|(code, _)| *code == feature.code) {
                Some((_, sum)) => *sum += effect,
                None => contributions.push((feature.code, effect)),
            }
        }
        let mut value = with_headroom(value);
        let mut adjustments = Vec::new();
        for limit in guards.limits(dimension) {
            let limited = limit.apply(value);
            if (limited - value).abs() > f64::EPSILON {
                adjustments.push(Adjustment { code: limit.code, effect: limited - value, item: limit.item });
            }
            value = limited;
        }
        let value = value.clamp(1.0, 5.0);
        Scored { score: Score::nearest(value), contributions, adjustments }
    }
}

/// Flattens the ends of the scale, so that a further complaint or confirmation still shows in tenths.
fn with_headroom(value: f64) -> f64 {
    const UPPER: f64 = 4.3;
    const LOWER: f64 = 1.9;
    const FLATTENED: f64 = 0.4;
    if value > UPPER {
        UPPER + (value - UPPER) * FLATTENED
    } else if value < LOWER {
        LOWER - (LOWER - value) * FLATTENED
    } else {
        value
    }
}
