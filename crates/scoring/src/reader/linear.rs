//! A linear model.

use assay_encoder::Model;

use super::error::ReaderError;
use super::tensor;

/// Weights and biases. Sums run in the order of the inputs: the same bytes on every machine.
#[derive(Debug)]
pub(super) struct Linear {
    /// `[inputs, outputs]`, row-major.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// The tensors `NAME.weight`, a row for each input, and `NAME.bias`.
    pub(super) fn read(
        model: &Model,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Self, ReaderError> {
        Ok(Self {
            weights: tensor(model, &format!("{name}.weight"), &[inputs, outputs])?.to_vec(),
            bias: tensor(model, &format!("{name}.bias"), &[outputs])?.to_vec(),
        })
    }

    /// Computes the outputs.
    pub(super) fn apply(&self, inputs: &[f32]) -> Vec<f32> {
        let mut sums = self.bias.clone();
        for (input, weights) in inputs.iter().zip(self.weights.chunks_exact(sums.len().max(1))) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += input * weight;
            }
        }
        sums
    }
}
