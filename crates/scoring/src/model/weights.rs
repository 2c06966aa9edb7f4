//! The weights that ship with the crate: data, with the reason for every family of features.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::LinearDimension;
use crate::customer::EndState;
use crate::features::Feature;

const BUILTIN: &str = include_str!("../../weights/builtin.json");

/// Why a weights file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// It is not the JSON that is expected.
    #[error("the weights file cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A feature of this scorer has no weight.
    #[error("the weights file has no weight for the feature `{0}`: fit it again with this version")]
    Missing(String),
    /// A weight for a feature that this scorer does not have.
    #[error("the weights file has a weight for the unknown feature `{0}`: fit it again with this version")]
    Unknown(String),
    /// A weight is negative: the sign belongs to the feature, not to the weight.
    #[error("the weight of `{0}` is negative or not finite: the direction of a feature is fixed")]
    Sign(String),
    /// A state without a confidence.
    #[error("the weights file has no confidence for the end state `{0}`")]
    Confidence(&'static str),
}

/// One dimension's linear model, weights in the order of the features.
#[derive(Debug)]
pub(crate) struct Linear {
    pub intercept: f64,
    pub weights: Vec<f64>,
}

/// Share of conversations that were scored within one point of human raters, by dimension.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Agreement {
    pub resolution_accuracy: f64,
    pub interaction_effort: f64,
}

/// Everything that was fitted.
#[derive(Debug)]
pub(crate) struct Weights {
    resolution_accuracy: Linear,
    interaction_effort: Linear,
    agreement: BTreeMap<String, Agreement>,
}

#[derive(Deserialize)]
struct File {
    intercept: Pair,
    families: Vec<Family>,
    agreement: BTreeMap<String, Agreement>,
}

#[derive(Deserialize)]
struct Family {
    /// Why the family moves scores; for readers.
    #[serde(rename = "why")]
    _why: String,
    weights: BTreeMap<String, Pair>,
}

#[derive(Clone, Copy, Deserialize)]
struct Pair {
    resolution_accuracy: f64,
    interaction_effort: f64,
}

impl Weights {
    /// Reads the shipped weights for these features; a mismatch is refused.
    pub(crate) fn builtin(features: &[Feature]) -> Result<Self, WeightsError> {
        Self::parse(BUILTIN, features)
    }

    fn parse(text: &str, features: &[Feature]) -> Result<Self, WeightsError> {
        let file: File = serde_json::from_str(text)?;
        let mut pairs: BTreeMap<String, Pair> =
            file.families.into_iter().flat_map(|family| family.weights).collect();
        let mut in_order = Vec::with_capacity(features.len());
        for feature in features {
            let name = feature.name.to_string();
            let pair = pairs.remove(&name).ok_or_else(|| WeightsError::Missing(name.clone()))?;
            if !is_magnitude(pair.resolution_accuracy) || !is_magnitude(pair.interaction_effort) {
                return Err(WeightsError::Sign(name));
            }
            in_order.push(pair);
        }
        if let Some(name) = pairs.into_keys().next() {
            return Err(WeightsError::Unknown(name));
        }
        if let Some(missing) = EndState::ALL.iter().find(|end| !file.agreement.contains_key(end.name())) {
            return Err(WeightsError::Confidence(missing.name()));
        }
        let linear = |part: fn(Pair) -> f64| Linear {
            intercept: part(file.intercept),
            weights: in_order.iter().copied().map(part).collect(),
        };
        Ok(Self {
            resolution_accuracy: linear(|pair| pair.resolution_accuracy),
            interaction_effort: linear(|pair| pair.interaction_effort),
            agreement: file.agreement,
        })
    }

    /// The linear model of a dimension.
    pub(super) fn of(&self, dimension: LinearDimension) -> &Linear {
        match dimension {
            LinearDimension::ResolutionAccuracy => &self.resolution_accuracy,
            LinearDimension::InteractionEffort => &self.interaction_effort,
        }
    }

    /// How often conversations that end this way were scored within one point of human raters.
    pub(crate) fn agreement(&self, end: EndState) -> Agreement {
        let unknown = Agreement { resolution_accuracy: 0.0, interaction_effort: 0.0 };
        self.agreement.get(end.name()).copied().unwrap_or(unknown)
    }

    /// Feeds the shipped weights into `hasher`.
    pub(crate) fn digest(hasher: &mut Sha256) {
        hasher.update((BUILTIN.len() as u64).to_be_bytes());
        hasher.update(BUILTIN.as_bytes());
    }
}

fn is_magnitude(weight: f64) -> bool {
    weight.is_finite() && weight >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexicon::Lexicon;
    use crate::{empty_conversation, features_of};

    fn refusal(text: &str) -> String {
        let features = features_of(&Lexicon::builtin().unwrap(), &empty_conversation());
        Weights::parse(text, &features).unwrap_err().to_string()
    }

    #[test]
    fn weights_that_do_not_fit_the_features_are_refused_by_name() {
        let cases = [
            (
                BUILTIN.replace("\"end.rejected\"", "\"end.refused\""),
                "no weight for the feature `end.rejected`",
            ),
            (BUILTIN.replacen("\"why\"", "\"reason\"", 1), "missing field `why`"),
            (BUILTIN.replace("\"gave_up\"", "\"gave_in\""), "no confidence for the end state `gave_up`"),
        ];
        for (text, reason) in cases {
            let refused = refusal(&text);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn a_weight_cannot_turn_the_direction_of_a_feature() {
        let line = BUILTIN.lines().find(|line| line.contains("\"end.rejected\"")).unwrap();
        let turned = line.replace("\"resolution_accuracy\": ", "\"resolution_accuracy\": -");
        let refused = refusal(&BUILTIN.replace(line, &turned));
        assert!(refused.contains("direction of a feature is fixed"), "{refused}");
    }
}
