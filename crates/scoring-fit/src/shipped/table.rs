//! `data/shipped.json`: what the shipped weights are fitted on and how.

use std::collections::BTreeMap;

use assay_scoring::weights_file::PerDimension;
use serde::Deserialize;

use crate::FitError;
use crate::boosting::BoostingParameters;
use crate::model::{Bounds, ModelParameters, Schema};
use crate::scored::Dimension;

const TABLE: &str = include_str!("../../data/shipped.json");

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    #[serde(rename = "about")]
    _about: String,
    pub parameters: Parameters,
    pub data: Vec<DataSetRules>,
    /// Mean rho over sets that were left out.
    pub unseen_goal: f64,
    #[serde(rename = "least_about")]
    _least_about: String,
    least: PerDimension<BTreeMap<String, f64>>,
    #[serde(rename = "most_about")]
    _most_about: String,
    most: PerDimension<BTreeMap<String, f64>>,
}

/// How weights are fitted and calibrated.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    ridge: f64,
    tree_share: f64,
    least_share: f64,
    boosting: BoostingParameters,
    pub folds: usize,
    pub fold_seed: u64,
    pub calibration: CalibrationParameters,
}

/// How shares of well-scored conversations are drawn together.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalibrationParameters {
    /// Where shares are drawn to.
    pub prior: f64,
    /// The weight of so many conversations.
    pub strength: f64,
    /// For end states that no conversation had.
    pub unseen: f64,
}

/// How one data set is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DataSetRules {
    pub name: String,
    resolution_accuracy: LabelRule,
    interaction_effort: LabelRule,
    pub classes: ClassRule,
}

/// How a label becomes points.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelRule {
    pub label: String,
    factor: f64,
    offset: f64,
    pub weight: f64,
    pub calibration_weight: f64,
    pub measured: bool,
    pub goal: Option<f64>,
}

/// How a label becomes a class.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassRule {
    pub label: String,
    pub not_resolved_below: f64,
    pub resolved_above: f64,
    pub goal: f64,
}

impl Table {
    /// The table that is built in.
    pub(crate) fn builtin() -> Result<Self, FitError> {
        serde_json::from_str(TABLE).map_err(FitError::Table)
    }

    /// The bounds of every feature, in order. A bound of a feature that there is not is refused: it would be lost.
    pub(crate) fn bounds(&self, schema: &Schema, dimension: Dimension) -> Result<Vec<Bounds>, FitError> {
        let (least, most) = (dimension.of(&self.least), dimension.of(&self.most));
        let is_known = |name: &String| schema.features.iter().any(|feature| feature.name == *name);
        if let Some(stray) = least.keys().chain(most.keys()).find(|name| !is_known(name)) {
            return Err(FitError::Bounds(stray.clone()));
        }
        let bounds = schema.features.iter().map(|feature| Bounds {
            least: least.get(&feature.name).copied().unwrap_or(0.0),
            most: most.get(&feature.name).copied().unwrap_or(f64::INFINITY),
        });
        Ok(bounds.collect())
    }
}

impl Parameters {
    pub(crate) const fn model(&self) -> ModelParameters {
        let Self { ridge, tree_share, least_share, boosting, .. } = *self;
        ModelParameters { ridge, tree_share, least_share, boosting }
    }

    /// By name, for the manifest.
    pub(crate) fn named(&self) -> BTreeMap<String, f64> {
        let boosting = self.boosting;
        let named = [
            ("ridge", self.ridge),
            ("tree_share", self.tree_share),
            ("least_share", self.least_share),
            ("boosting.rounds", boosting.rounds as f64),
            ("boosting.learning_rate", boosting.learning_rate),
            ("boosting.most_leaves", boosting.most_leaves as f64),
            ("boosting.least_weight", boosting.least_weight),
            ("boosting.l2", boosting.l2),
            ("folds", self.folds as f64),
            ("fold_seed", self.fold_seed as f64),
            ("calibration.prior", self.calibration.prior),
            ("calibration.strength", self.calibration.strength),
        ];
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl DataSetRules {
    pub(crate) const fn rule(&self, dimension: Dimension) -> &LabelRule {
        match dimension {
            Dimension::ResolutionAccuracy => &self.resolution_accuracy,
            Dimension::InteractionEffort => &self.interaction_effort,
        }
    }
}

impl LabelRule {
    pub(crate) fn points(&self, label: f64) -> f64 {
        label * self.factor + self.offset
    }
}

#[cfg(test)]
mod tests {
    use assay_scoring::FeatureReader;

    use super::*;

    #[test]
    fn every_bound_names_a_feature_of_this_version() {
        let schema = Schema::of(&FeatureReader::builtin().unwrap());
        let table = Table::builtin().unwrap();
        for dimension in Dimension::BOTH {
            let bounds = table.bounds(&schema, dimension).unwrap();
            assert!(bounds.iter().all(|bounds| bounds.least <= bounds.most));
            assert!(bounds.iter().any(|bounds| bounds.least > 0.0));
        }
    }

    #[test]
    fn a_bound_of_an_unknown_feature_is_refused_by_name() {
        let mut schema = Schema::of(&FeatureReader::builtin().unwrap());
        schema.features.retain(|feature| feature.name != "end.rejected");
        let refused = Table::builtin().unwrap().bounds(&schema, Dimension::ResolutionAccuracy).unwrap_err();
        assert!(refused.to_string().contains("`end.rejected`"), "{refused}");
    }
}
