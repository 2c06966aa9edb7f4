//! What a message does, from what is seen of it: a linear model for each act.

use std::collections::HashMap;

use super::exponential;
use super::file::{ModelError, ModelFile};
use crate::reader::acts::{Act, MessageActs};
use crate::transcript::Role;

/// Linear models over hashes, one for each act.
#[derive(Debug)]
pub(super) struct ActsModel {
    /// Where the weights of a hash are.
    rows: HashMap<u32, u32, std::hash::BuildHasherDefault<Hashed>>,
    /// How rare what was seen is.
    rarity: Vec<f32>,
    /// For each row a weight for each act.
    weights: Vec<i8>,
    /// What a weight of 1 is worth, for each act.
    scale: Vec<f32>,
    bias: Vec<f32>,
}

impl ActsModel {
    /// The tables `grams.*` and `acts.*` of the file.
    pub(super) fn read(file: &ModelFile<'_>) -> Result<Self, ModelError> {
        let hashes = file.u32("grams.hashes", None)?;
        let acts = Act::ALL.len();
        let rows = hashes.iter().zip(0..).map(|(hash, row)| (*hash, row)).collect();
        Ok(Self {
            rows,
            rarity: file.f32("grams.rarity", hashes.len())?,
            weights: file.i8("acts.weights", hashes.len() * acts)?,
            scale: file.f32("acts.scale", acts)?,
            bias: file.f32("acts.bias", acts)?,
        })
    }

    /// What a message of `role` does. Sums in the order of the hashes: the same bytes on every machine.
    pub(super) fn acts(&self, role: Role, grams: &[u32]) -> MessageActs {
        const ACTS: usize = Act::ALL.len();
        let (mut sums, mut squares) = ([0.0f32; ACTS], 0.0f32);
        for gram in grams {
            let Some(row) = self.rows.get(gram).map(|row| *row as usize) else { continue };
            let rarity = self.rarity.get(row).copied().unwrap_or(0.0);
            squares += rarity * rarity;
            let weights = self.weights.get(row * ACTS..(row + 1) * ACTS).unwrap_or(&[]);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += rarity * f32::from(*weight);
            }
        }
        let length = squares.sqrt().max(f32::MIN_POSITIVE);
        let mut probabilities = [0.0; ACTS];
        for (at, (probability, act)) in probabilities.iter_mut().zip(Act::ALL).enumerate() {
            let can = match role {
                Role::Customer => act.by_customer(),
                Role::Ai | Role::Human => !act.by_customer(),
                Role::Mixed => true,
                Role::System | Role::Note => false,
            };
            if can {
                let value = |table: &[f32]| table.get(at).copied().unwrap_or(0.0);
                let sum = sums.get(at).copied().unwrap_or(0.0) / length;
                let logit = sum * value(&self.scale) + value(&self.bias);
                *probability = (1.0 / (1.0 + exponential(-f64::from(logit)))) as f32;
            }
        }
        MessageActs::new(probabilities)
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl std::hash::Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, value: u32) {
        // The map takes its buckets from the low bits and a tag from the high ones.
        self.0 = u64::from(value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
