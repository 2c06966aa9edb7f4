//! The two models of a dimension, and how what they say is mixed.

use super::Seen;
use super::file::{LEAF_UNIT, ModelWeights};
use super::linear::Linear;
use super::trees::Ensemble;
use super::weights::SignalCodes;
use super::wording::Head;
use crate::features::Feature;

/// Everything that scores one dimension, checked.
#[derive(Debug)]
pub(super) struct Models {
    pub brief: Model,
    pub detailed: Model,
    /// What words add to both; only in weights that were fitted for one place.
    pub head: Option<Head>,
}

/// One model.
#[derive(Debug)]
pub(super) struct Model {
    linear: Linear,
    tree_share: f64,
    tree_intercept: f64,
    tree_scale: f64,
    trees: Ensemble,
}

/// What the models of a dimension say together.
pub(super) struct Said {
    /// Points, without those of the words.
    pub value: f64,
    /// The points where nothing was observed.
    pub baseline: f64,
    /// Points by signal code, in order of the codes; with the baseline they add up to the value.
    pub points: Vec<f64>,
    /// What the words add, where there is a head for them.
    pub words: Option<f64>,
}

impl Models {
    /// What both models say, each by its share. A model without one is not asked.
    pub(super) fn said(&self, seen: &Seen, codes: &SignalCodes) -> Said {
        let words = self.head.as_ref().map(|head| head.points(&seen.wording));
        let mut said = Said { value: 0.0, baseline: 0.0, points: vec![0.0; codes.names.len()], words };
        let values: Vec<f64> = seen.features.iter().map(|feature| feature.value).collect();
        let detail = seen.detail.share();
        for (model, share) in [(&self.brief, 1.0 - detail), (&self.detailed, detail)] {
            if share > 0.0 {
                model.add(share, &seen.features, &values, codes, &mut said);
            }
        }
        said
    }
}

impl Model {
    /// Takes over weights that were checked, with their trees.
    pub(super) fn new(weights: &ModelWeights, trees: Ensemble) -> Self {
        Self {
            linear: Linear::new(weights),
            tree_share: weights.tree_share,
            tree_intercept: weights.tree_intercept,
            tree_scale: weights.tree_scale,
            trees,
        }
    }

    /// Adds `share` of what the model says. `values` are those of the features, in order.
    fn add(&self, share: f64, features: &[Feature], values: &[f64], codes: &SignalCodes, said: &mut Said) {
        let linear_share = 1.0 - self.tree_share;
        let leaf_unit = self.tree_share * self.tree_scale * LEAF_UNIT;
        let tree_base = self.tree_share * self.tree_intercept;
        let mut linear = self.linear.intercept;
        for (effect, code) in self.linear.effects(features).zip(&codes.of_feature) {
            linear += effect;
            if let Some(points) = said.points.get_mut(*code) {
                *points += share * linear_share * effect;
            }
        }
        let mut changes = vec![0i64; codes.names.len()];
        let leaves = self.trees.add_changes(values, &mut changes);
        for (points, change) in said.points.iter_mut().zip(changes) {
            *points += share * leaf_unit * change as f64;
        }
        said.value += share * (linear_share * linear + tree_base + leaf_unit * leaves as f64);
        let zero = leaf_unit * self.trees.zero as f64;
        said.baseline += share * (linear_share * self.linear.intercept + tree_base + zero);
    }
}
