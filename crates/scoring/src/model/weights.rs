//! Weights that were checked against this version of the engine.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::ModelledDimension;
use super::checks::{
    WeightsError, check_features, check_magnitude, check_share, check_thresholds, check_version,
};
use super::file::{
    FORMAT, Mixture, ModelWeights, PerDimension, ResolutionThresholds, WeightsFile, WordingWeights,
};
use super::mixture::{Model, Models};
use super::trees::Ensemble;
use super::wording::{BITS, Head};
use crate::customer::EndState;
use crate::features::Feature;
use crate::lexicon::Lexicon;
use crate::{SCORER_VERSION, facts};

/// The text of the weights file that ships with the crate.
pub const BUILTIN_WEIGHTS: &str = include_str!("../../weights/builtin.json");

/// Everything that was fitted, checked.
#[derive(Debug)]
pub(crate) struct Weights {
    models: PerDimension<Models>,
    pub(super) wording_bits: Option<u32>,
    agreement: BTreeMap<String, PerDimension<f64>>,
    resolution: Option<ResolutionThresholds>,
    pub(super) codes: SignalCodes,
    sha256: String,
}

/// The signal codes of the features, numbered in the order of their first appearance.
#[derive(Debug)]
pub(super) struct SignalCodes {
    pub names: Vec<&'static str>,
    /// Number of the code of each feature.
    pub of_feature: Vec<usize>,
}

/// Read before the rest, so that a file of another format is named as such.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: u64,
}

impl Weights {
    /// Reads the shipped weights for these features; a mismatch is refused.
    pub(crate) fn builtin(features: &[Feature]) -> Result<Self, WeightsError> {
        Self::parse(BUILTIN_WEIGHTS, features)
    }

    /// Reads weights for these features; a mismatch is refused.
    pub(crate) fn parse(text: &str, features: &[Feature]) -> Result<Self, WeightsError> {
        let Header { format } = serde_json::from_str(text)?;
        check_version("format", &format.to_string(), &FORMAT.to_string())?;
        let file: WeightsFile = serde_json::from_str(text)?;
        check_version("scorer version", &file.scorer_version, SCORER_VERSION)?;
        check_version("phrase lists", &file.lexicon_sha256, &Lexicon::sha256())?;
        check_features(&file.features, features)?;
        if let Some(missing) = EndState::ALL.iter().find(|end| !file.agreement.contains_key(end.name())) {
            return Err(WeightsError::Confidence(missing.name()));
        }
        for (end, agreement) in &file.agreement {
            check_share(end, agreement.resolution_accuracy)?;
            check_share(end, agreement.interaction_effort)?;
        }
        if let Some(thresholds) = file.resolution {
            check_thresholds(thresholds)?;
        }
        let codes = SignalCodes::of(features);
        let heads = heads(file.wording.as_ref())?;
        let models = |[brief, detailed]: [&'static str; 2], mixture: &Mixture, head| {
            Ok::<_, WeightsError>(Models {
                brief: model(brief, &mixture.brief, features, &codes)?,
                detailed: model(detailed, &mixture.detailed, features, &codes)?,
                head,
            })
        };
        let names = ["resolution_accuracy.brief", "resolution_accuracy.detailed"];
        let resolution_accuracy =
            models(names, &file.dimensions.resolution_accuracy, heads.resolution_accuracy)?;
        let names = ["interaction_effort.brief", "interaction_effort.detailed"];
        let interaction_effort =
            models(names, &file.dimensions.interaction_effort, heads.interaction_effort)?;
        Ok(Self {
            models: PerDimension { resolution_accuracy, interaction_effort },
            wording_bits: file.wording.map(|wording| wording.bits),
            agreement: file.agreement,
            resolution: file.resolution,
            codes,
            sha256: digest(text),
        })
    }

    /// The models of a dimension.
    pub(super) fn of(&self, dimension: ModelledDimension) -> &Models {
        match dimension {
            ModelledDimension::ResolutionAccuracy => &self.models.resolution_accuracy,
            ModelledDimension::InteractionEffort => &self.models.interaction_effort,
        }
    }

    /// How often conversations that end this way were scored within one point of human raters.
    pub(crate) fn agreement(&self, end: EndState) -> PerDimension<f64> {
        let unknown = PerDimension { resolution_accuracy: 0.0, interaction_effort: 0.0 };
        self.agreement.get(end.name()).copied().unwrap_or(unknown)
    }

    /// Where a resolution-accuracy score says that the issue was solved, or not; `None` when it was not fitted.
    pub(crate) fn resolution_thresholds(&self) -> Option<ResolutionThresholds> {
        self.resolution
    }

    /// SHA-256 over the weights file and the phrase lists, lower-case hexadecimal.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }
}

impl SignalCodes {
    fn of(features: &[Feature]) -> Self {
        let mut names: Vec<&'static str> = Vec::new();
        let of_feature = features
            .iter()
            .map(|feature| {
                names.iter().position(|name| *name == feature.code).unwrap_or_else(|| {
                    names.push(feature.code);
                    names.len() - 1
                })
            })
            .collect();
        Self { names, of_feature }
    }
}

/// Checks one model; `name` is its place in the file.
fn model(
    name: &'static str,
    weights: &ModelWeights,
    features: &[Feature],
    codes: &SignalCodes,
) -> Result<Model, WeightsError> {
    if weights.weights.len() != features.len() {
        return Err(WeightsError::Length { found: weights.weights.len(), expected: features.len() });
    }
    for (feature, weight) in features.iter().zip(&weights.weights) {
        check_magnitude(|| format!("weight of `{}` for {name}", feature.name), *weight)?;
    }
    check_magnitude(|| format!("tree_scale of {name}"), weights.tree_scale)?;
    check_share(name, weights.tree_share)?;
    for intercept in [weights.intercept, weights.tree_intercept] {
        if !intercept.is_finite() {
            let what = format!("intercept of {name}");
            return Err(WeightsError::Number { what, value: intercept, rule: "it must be finite" });
        }
    }
    let trees = Ensemble::new(&weights.trees, features, &codes.of_feature)
        .map_err(|(place, reason)| WeightsError::Tree { model: name, place, reason })?;
    Ok(Model::new(weights, trees))
}

fn heads(wording: Option<&WordingWeights>) -> Result<PerDimension<Option<Head>>, WeightsError> {
    let mut heads = PerDimension { resolution_accuracy: None, interaction_effort: None };
    let Some(wording) = wording else {
        return Ok(heads);
    };
    if !BITS.contains(&wording.bits) {
        return Err(WeightsError::Wording);
    }
    let checked = |head: &_| Head::checked(head, wording.bits).ok_or(WeightsError::Wording);
    heads.resolution_accuracy = wording.heads.resolution_accuracy.as_ref().map(checked).transpose()?;
    heads.interaction_effort = wording.heads.interaction_effort.as_ref().map(checked).transpose()?;
    Ok(heads)
}

fn digest(text: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
    Lexicon::digest(&mut hasher);
    facts::hex(&hasher.finalize())
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
