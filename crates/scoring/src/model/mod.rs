//! From features to scores: a model for briefly opened conversations and one for described problems, mixed by the
//! opening, each the mean of a sign-constrained linear model and a monotone tree ensemble; what words add where that
//! was fitted; then guards that no weight can outvote.

mod checks;
pub(crate) mod file;
mod guards;
mod linear;
mod mixture;
mod opening;
mod trees;
mod weights;
mod wording;

use assay_contracts::evaluation::Score;

pub use self::checks::WeightsError;
pub(crate) use self::guards::{Adjustment, Guards};
pub(crate) use self::opening::Detail;
pub use self::trees::TreeError;
pub use self::weights::BUILTIN_WEIGHTS;
pub(crate) use self::weights::Weights;
pub(crate) use self::wording::wording;
use crate::features::Feature;
use crate::transcript::Transcript;

/// Code of what the words themselves add.
const LOCAL_WORDING: &str = "LOCAL_WORDING";

/// The two dimensions that a model scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelledDimension {
    ResolutionAccuracy,
    InteractionEffort,
}

/// What a model sees of a conversation.
pub(crate) struct Seen {
    /// All features, in order.
    pub features: Vec<Feature>,
    /// By how much the opening calls for the one model and the other.
    pub detail: Detail,
    /// Hashed words, for weights that have a head for them; else empty.
    pub wording: Vec<(u32, f64)>,
}

/// What a model says, before the guards.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// Points, not limited to 1–5.
    pub value: f64,
    /// The points where nothing was observed.
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests add the parts up"))]
    pub baseline: f64,
    /// What was observed adds, by signal code, in order of the codes. With the baseline they add up to the value.
    pub contributions: Vec<(&'static str, f64)>,
}

/// A dimension's score and how it came about; the parts add up to the score.
#[derive(Debug)]
pub(crate) struct Scored {
    /// 1.0–5.0 in tenths.
    pub score: Score,
    /// What was observed moved, by signal code, in order of the codes.
    pub contributions: Vec<(&'static str, f64)>,
    /// What guards moved.
    pub adjustments: Vec<Adjustment>,
}

impl Weights {
    /// What the models see of a conversation with these features.
    pub(crate) fn see(&self, features: Vec<Feature>, transcript: &Transcript<'_>) -> Seen {
        let wording = self.wording_bits.map(|bits| wording(transcript, bits)).unwrap_or_default();
        Seen { features, detail: Detail::of(transcript), wording }
    }

    /// Scores one dimension.
    pub(crate) fn score(&self, dimension: ModelledDimension, seen: &Seen, guards: &Guards<'_, '_>) -> Scored {
        let estimate = self.estimate(dimension, seen);
        let mut value = with_headroom(estimate.value);
        let mut adjustments = Vec::new();
        for limit in guards.limits(dimension) {
            let limited = limit.apply(value);
            if (limited - value).abs() > f64::EPSILON {
                adjustments.push(Adjustment { code: limit.code, effect: limited - value, item: limit.item });
            }
            value = limited;
        }
        let steps = guards.steps(dimension);
        let stepped = (value + steps.effect).clamp(1.0, 5.0);
        if (stepped - value).abs() > f64::EPSILON {
            adjustments.push(Adjustment { effect: stepped - value, ..steps });
        }
        let value = stepped;
        Scored { score: Score::nearest(value), contributions: estimate.contributions, adjustments }
    }

    /// What the models of a dimension say, before the guards.
    ///
    /// The value is summed up over features and over whole numbers of leaves, not over contributions, and the share
    /// of each model depends on nothing but the opening: so it is monotone in every feature to the last bit, as long
    /// as [`Seen::detail`] stays. More words in the opening change `detail`, too, and may bring the other model to
    /// bear: in the length of the opening a score is monotone only where one model stands alone.
    pub(crate) fn estimate(&self, dimension: ModelledDimension, seen: &Seen) -> Estimate {
        let mixed = self.of(dimension).said(seen, &self.codes);
        let words = mixed.words.unwrap_or(0.0);
        let points = self.codes.names.iter().copied().zip(mixed.points);
        let words_told = mixed.words.map(|points| (LOCAL_WORDING, points));
        Estimate {
            value: mixed.value + words,
            baseline: mixed.baseline,
            contributions: points.chain(words_told).collect(),
        }
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
