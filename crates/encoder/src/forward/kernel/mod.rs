//! Multiplication of quantised matrices, one implementation for each instruction set.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

pub(crate) use self::portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::x86::{Avx2, Avx512Vnni};
use super::floating_point::{BLOCK, gelu, multiply_block, softmax};
use super::{Input, Transformer};
use crate::lanes::{LANES, Lanes};
use crate::workspace::Workspace;

/// Instruction set that a model runs with. All of them give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Baseline instructions of the compilation target.
    Portable,
    /// AVX2 of x86-64.
    Avx2,
    /// AVX-512 of x86-64 with its vector neural network instructions.
    Avx512Vnni,
}

impl Kernel {
    /// Every kernel, the slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512Vnni];

    /// The fastest kernel of this processor.
    #[must_use]
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|kernel| kernel.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this processor has the kernel's instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => Avx512Vnni::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512Vnni => false,
        }
    }
}

/// Implementation of a [`Kernel`]: layout and multiplication of 8-bit integers. A value proves that the processor supports it.
pub(crate) trait Arithmetic: Copy {
    /// Storage type of a quantised activation.
    type Activation: Copy + Default;
    /// Packed weights of a matrix.
    type Weights;
    /// Vectors that are multiplied together; the number of vectors is padded to a multiple of it.
    const ROWS: usize;

    /// Stores a quantised number, from −127 to 127.
    fn activation(quantised: i32) -> Self::Activation;

    /// The buffer of `workspace` for this type of activations.
    fn activations(workspace: &mut Workspace) -> &mut Vec<Self::Activation>;

    /// Packs rows of `inputs` signed bytes, one row for each output. Inputs and outputs are multiples of sixteen.
    fn pack(rows: &[u8], inputs: usize) -> Self::Weights;

    /// Writes the results of `outputs`, a range between multiples of sixteen, for each vector. `scales` has one scale per
    /// vector.
    fn multiply(
        self,
        matrix: &Matrix<Self>,
        outputs: Range<usize>,
        activations: &[Self::Activation],
        scales: &[f32],
        results: &mut Vec<f32>,
    );

    /// [`multiply_block`] of each `length` rows of `left`, one block of results for each.
    #[inline(always)]
    fn multiply_blocks(self, left: &[[f32; BLOCK]], length: usize, right: &[Lanes], results: &mut [Lanes]) {
        for (left, results) in left.chunks_exact(length).zip(results.as_chunks_mut::<BLOCK>().0) {
            *results = multiply_block(left, right);
        }
    }

    /// [`gelu`] of each number.
    #[inline(always)]
    fn activate(self, values: &mut [f32]) {
        for value in values {
            *value = gelu(*value);
        }
    }

    /// [`softmax`].
    #[inline(always)]
    fn softmax(self, scores: &mut [Lanes]) -> Lanes {
        softmax(scores)
    }

    /// [`super::encode`], compiled for the instructions of this arithmetic.
    fn encode(transformer: &Transformer<Self>, input: Input<'_>, workspace: &mut Workspace) -> Vec<f32>;
}

/// A matrix of 8-bit weights with a scale and a bias for each output.
pub(crate) struct Matrix<A: Arithmetic> {
    inputs: usize,
    weights: A::Weights,
    scales: Vec<[f32; LANES]>,
    biases: Vec<[f32; LANES]>,
}

impl<A: Arithmetic> Matrix<A> {
    /// `rows` has `inputs` signed bytes for each output. Both numbers are multiples of sixteen.
    pub(crate) fn new(rows: &[u8], inputs: usize, scales: &[f32], biases: &[f32]) -> Self {
        Self {
            inputs,
            weights: A::pack(rows, inputs),
            scales: scales.as_chunks().0.to_vec(),
            biases: biases.as_chunks().0.to_vec(),
        }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.scales.len() * LANES
    }

    /// Scales the exact integer sums of sixteen outputs and adds the biases.
    #[inline(always)]
    fn dequantise(&self, block: usize, sums: &[i32; LANES], row_scale: f32, results: &mut [f32]) {
        let parts = sums.iter().zip(&self.scales[block]).zip(&self.biases[block]);
        for (result, ((sum, scale), bias)) in results.iter_mut().zip(parts) {
            *result = *sum as f32 * (row_scale * scale) + bias;
        }
    }
}
