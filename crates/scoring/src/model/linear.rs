//! The sign-constrained linear part of a model.

use super::file::ModelWeights;
use crate::features::Feature;

/// Weights in the order of the features; none is negative.
#[derive(Debug)]
pub(super) struct Linear {
    /// The value where nothing was observed.
    pub intercept: f64,
    weights: Vec<f64>,
}

impl Linear {
    /// The linear part of checked weights.
    pub(super) fn new(model: &ModelWeights) -> Self {
        Self { intercept: model.intercept, weights: model.weights.clone() }
    }

    /// What each feature adds, in order; their sum in this order is monotone to the last bit.
    pub(super) fn effects<'m>(&'m self, features: &'m [Feature]) -> impl Iterator<Item = f64> + 'm {
        let pairs = features.iter().zip(&self.weights);
        pairs.map(|(feature, weight)| feature.sign.factor() * weight * feature.value)
    }
}
