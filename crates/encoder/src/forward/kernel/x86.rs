//! Multiplication with AVX2, and with AVX-512 VNNI.
//!
//! The only module with `unsafe`, for calls of functions with target features that were detected at run time, and for
//! conversions between registers and arrays.

#![allow(unsafe_code, reason = "functions for certain processors; each place says why it is sound")]

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Arithmetic, Matrix};
use crate::forward::floating_point::{BLOCK, gelu, softmax};
use crate::forward::{Input, Transformer, encode};
use crate::lanes::{LANES, Lanes};
use crate::workspace::{Workspace, resize};

/// Vectors per multiplication: with two (AVX2) or four (AVX-512) accumulators each, nearly all registers are in use.
const ROWS: usize = 6;

/// Proof that the processor has AVX2: only [`Avx2::detect`] makes it.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Proof that the processor has AVX-512 with VNNI: only [`Avx512Vnni::detect`] makes it.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Vnni(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

impl Avx512Vnni {
    pub(crate) fn detect() -> Option<Self> {
        let available = Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        available.then_some(Self(()))
    }
}

impl Arithmetic for Avx2 {
    type Activation = i16;
    /// For each block of sixteen outputs and each pair of inputs: `[output][input]`, eight outputs in each half.
    type Weights = Vec<[__m128i; 2]>;
    const ROWS: usize = ROWS;

    #[inline(always)]
    fn activation(quantised: i32) -> i16 {
        quantised as i16
    }

    fn activations(workspace: &mut Workspace) -> &mut Vec<i16> {
        &mut workspace.i16_activations
    }

    fn pack(rows: &[u8], inputs: usize) -> Self::Weights {
        interleave::<2, 32, _>(rows, inputs, |bytes| {
            // SAFETY: both are 32 bytes without padding, and every pattern of bits is valid in both.
            unsafe { std::mem::transmute::<[u8; 32], [__m128i; 2]>(bytes) }
        })
    }

    fn multiply(
        self,
        matrix: &Matrix<Self>,
        outputs: Range<usize>,
        activations: &[i16],
        scales: &[f32],
        results: &mut Vec<f32>,
    ) {
        resize(results, scales.len() * outputs.len());
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { multiply_avx2(matrix, outputs, activations, scales, results) }
    }

    fn encode(transformer: &Transformer<Self>, input: Input<'_>, workspace: &mut Workspace) -> Vec<f32> {
        // SAFETY: `transformer.arithmetic` proves that the processor has AVX2.
        unsafe { encode_avx2(transformer, input, workspace) }
    }
}

impl Arithmetic for Avx512Vnni {
    /// The quantised number plus 128: the instruction multiplies unsigned by signed bytes.
    type Activation = u8;
    type Weights = Avx512Weights;
    const ROWS: usize = ROWS;

    #[inline(always)]
    fn activation(quantised: i32) -> u8 {
        (quantised + 128) as u8
    }

    fn activations(workspace: &mut Workspace) -> &mut Vec<u8> {
        &mut workspace.u8_activations
    }

    fn pack(rows: &[u8], inputs: usize) -> Self::Weights {
        let panels = interleave::<4, 64, _>(rows, inputs, |bytes| {
            // SAFETY: both are 64 bytes without padding, and every pattern of bits is valid in both.
            unsafe { std::mem::transmute::<[u8; 64], __m512i>(bytes) }
        });
        let excess = |row: &[u8]| row.iter().map(|byte| 128 * i32::from(byte.cast_signed())).sum::<i32>();
        let corrections: Vec<i32> = rows.chunks_exact(inputs).map(excess).collect();
        Avx512Weights { panels, corrections: corrections.as_chunks().0.to_vec() }
    }

    fn multiply(
        self,
        matrix: &Matrix<Self>,
        outputs: Range<usize>,
        activations: &[u8],
        scales: &[f32],
        results: &mut Vec<f32>,
    ) {
        resize(results, scales.len() * outputs.len());
        // SAFETY: `self` proves that the processor has these instructions.
        unsafe { multiply_avx512(matrix, outputs, activations, scales, results) }
    }

    fn multiply_blocks(self, left: &[[f32; BLOCK]], length: usize, right: &[Lanes], results: &mut [Lanes]) {
        // SAFETY: `self` proves that the processor has AVX-512.
        unsafe { multiply_blocks_avx512(left, length, right, results) }
    }

    fn activate(self, values: &mut [f32]) {
        // SAFETY: `self` proves that the processor has AVX-512.
        unsafe { activate_avx512(values) }
    }

    fn softmax(self, scores: &mut [Lanes]) -> Lanes {
        // SAFETY: `self` proves that the processor has AVX-512.
        unsafe { softmax_avx512(scores) }
    }

    fn encode(transformer: &Transformer<Self>, input: Input<'_>, workspace: &mut Workspace) -> Vec<f32> {
        // SAFETY: `transformer.arithmetic` proves that the processor has these instructions.
        unsafe { encode_avx512(transformer, input, workspace) }
    }
}

/// Weights for AVX-512.
pub(crate) struct Avx512Weights {
    /// For each block of sixteen outputs and each group of four inputs: `[output][input]`.
    panels: Vec<__m512i>,
    /// Excess of each output because 128 was added to every input; subtracted at the end.
    corrections: Vec<[i32; LANES]>,
}

/// Interleaves the rows of sixteen outputs: each vector has `INPUTS` weights of each of them, `BYTES` bytes in all.
fn interleave<const INPUTS: usize, const BYTES: usize, V>(
    rows: &[u8],
    inputs: usize,
    vector: impl Fn([u8; BYTES]) -> V,
) -> Vec<V> {
    let mut packed = Vec::with_capacity(rows.len() / BYTES);
    for block in rows.chunks_exact(LANES * inputs) {
        for start in (0..inputs).step_by(INPUTS) {
            let mut bytes = [0; BYTES];
            for (bytes, row) in bytes.chunks_exact_mut(INPUTS).zip(block.chunks_exact(inputs)) {
                bytes.copy_from_slice(&row[start..start + INPUTS]);
            }
            packed.push(vector(bytes));
        }
    }
    packed
}

#[target_feature(enable = "avx2")]
fn encode_avx2(transformer: &Transformer<Avx2>, input: Input<'_>, workspace: &mut Workspace) -> Vec<f32> {
    encode(transformer, input, workspace)
}

/// Floating-point code but for attention and activation is compiled for AVX2: compilers generate worse code for other loops over sixteen
/// numbers with AVX-512.
#[target_feature(enable = "avx2")]
fn encode_avx512(
    transformer: &Transformer<Avx512Vnni>,
    input: Input<'_>,
    workspace: &mut Workspace,
) -> Vec<f32> {
    encode(transformer, input, workspace)
}

#[target_feature(enable = "avx2")]
fn multiply_avx2(
    matrix: &Matrix<Avx2>,
    outputs: Range<usize>,
    activations: &[i16],
    scales: &[f32],
    results: &mut [f32],
) {
    let (steps, width) = (matrix.inputs / 2, outputs.len());
    let pairs = activations.as_chunks::<2>().0;
    for (index, block) in (outputs.start / LANES..outputs.end / LANES).enumerate() {
        let weights = &matrix.weights[block * steps..][..steps];
        let groups = pairs.chunks_exact(ROWS * steps).zip(scales.chunks(ROWS));
        for ((rows, scales), results) in groups.zip(results.chunks_mut(ROWS * width)) {
            let sums = sum_avx2(rows, weights);
            let rows = sums.iter().zip(scales).zip(results.chunks_exact_mut(width));
            for ((sums, scale), results) in rows {
                let sums = [store_avx2(sums[0]), store_avx2(sums[1])];
                let mut all = [0; LANES];
                all.copy_from_slice(sums.as_flattened());
                matrix.dequantise(block, &all, *scale, &mut results[index * LANES..][..LANES]);
            }
        }
    }
}

/// Sums of products of six vectors with sixteen outputs.
#[target_feature(enable = "avx2")]
#[inline]
fn sum_avx2(rows: &[[i16; 2]], weights: &[[__m128i; 2]]) -> [[__m256i; 2]; ROWS] {
    let steps = weights.len();
    let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
    let mut vectors = [&rows[..steps]; ROWS];
    for (row, vector) in vectors.iter_mut().enumerate() {
        *vector = &rows[row * steps..][..steps];
    }
    for (step, weights) in weights.iter().enumerate() {
        let low = _mm256_cvtepi8_epi16(weights[0]);
        let high = _mm256_cvtepi8_epi16(weights[1]);
        for (sums, vector) in sums.iter_mut().zip(&vectors) {
            let [first, second] = vector[step];
            let pair = i32::from(second) << 16 | i32::from(first.cast_unsigned());
            let pair = _mm256_set1_epi32(pair);
            sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(pair, low));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(pair, high));
        }
    }
    sums
}

#[target_feature(enable = "avx2")]
#[inline]
fn store_avx2(register: __m256i) -> [i32; 8] {
    // SAFETY: both are 32 bytes without padding, and every pattern of bits is valid in both.
    unsafe { std::mem::transmute::<__m256i, [i32; 8]>(register) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn multiply_avx512(
    matrix: &Matrix<Avx512Vnni>,
    outputs: Range<usize>,
    activations: &[u8],
    scales: &[f32],
    results: &mut [f32],
) {
    let (first, end) = (outputs.start / LANES, outputs.end / LANES);
    let task = Avx512Task { matrix, first, activations, scales, width: outputs.len() };
    let mut block = first;
    // Four blocks at a time fill the registers (see `ROWS`); the rest one by one.
    while block + 4 <= end {
        multiply_outputs::<4>(&task, block, results);
        block += 4;
    }
    while block < end {
        multiply_outputs::<1>(&task, block, results);
        block += 1;
    }
}

struct Avx512Task<'a> {
    matrix: &'a Matrix<Avx512Vnni>,
    /// The block of sixteen outputs that is written first in each row of results.
    first: usize,
    activations: &'a [u8],
    scales: &'a [f32],
    /// Numbers in a row of results.
    width: usize,
}

/// [`Arithmetic::multiply_blocks`] with registers of sixteen numbers. Multiplies, then adds: a fused operation would round otherwise.
#[target_feature(enable = "avx512f")]
fn multiply_blocks_avx512(left: &[[f32; BLOCK]], length: usize, right: &[Lanes], results: &mut [Lanes]) {
    for (left, results) in left.chunks_exact(length).zip(results.as_chunks_mut::<BLOCK>().0) {
        let mut sums = [_mm512_setzero_ps(); BLOCK];
        for (left, right) in left.iter().zip(right) {
            let right = load_avx512(right);
            for (sum, left) in sums.iter_mut().zip(left) {
                *sum = _mm512_add_ps(*sum, _mm512_mul_ps(_mm512_set1_ps(*left), right));
            }
        }
        *results = sums.map(|sum| {
            // SAFETY: both are 64 bytes without padding, and every pattern of bits is valid in both.
            unsafe { std::mem::transmute::<__m512, Lanes>(sum) }
        });
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn activate_avx512(values: &mut [f32]) {
    for value in values {
        *value = gelu(*value);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn softmax_avx512(scores: &mut [Lanes]) -> Lanes {
    softmax(scores)
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_avx512(lanes: &Lanes) -> __m512 {
    // SAFETY: both are 64 bytes without padding, and every pattern of bits is valid in both.
    unsafe { std::mem::transmute::<Lanes, __m512>(*lanes) }
}

/// Multiplies all vectors with `BLOCKS` times sixteen outputs.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn multiply_outputs<const BLOCKS: usize>(task: &Avx512Task<'_>, block: usize, results: &mut [f32]) {
    let (matrix, width) = (task.matrix, task.width);
    let steps = matrix.inputs / 4;
    let weights = &matrix.weights.panels[block * steps..][..BLOCKS * steps];
    let quads = task.activations.as_chunks::<4>().0;
    let groups = quads.chunks_exact(ROWS * steps).zip(task.scales.chunks(ROWS));
    for ((rows, scales), results) in groups.zip(results.chunks_mut(ROWS * width)) {
        let sums = sum_avx512::<BLOCKS>(rows, weights);
        let rows = sums.iter().zip(scales).zip(results.chunks_exact_mut(width));
        for ((sums, scale), results) in rows {
            for (offset, sums) in sums.iter().enumerate() {
                let block = block + offset;
                let mut sums = store_avx512(*sums);
                for (sum, correction) in sums.iter_mut().zip(&matrix.weights.corrections[block]) {
                    *sum -= correction;
                }
                matrix.dequantise(
                    block,
                    &sums,
                    *scale,
                    &mut results[(block - task.first) * LANES..][..LANES],
                );
            }
        }
    }
}

/// Sums of products of six vectors with `BLOCKS` times sixteen outputs.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
fn sum_avx512<const BLOCKS: usize>(rows: &[[u8; 4]], weights: &[__m512i]) -> [[__m512i; BLOCKS]; ROWS] {
    let steps = weights.len() / BLOCKS;
    let mut sums = [[_mm512_setzero_si512(); BLOCKS]; ROWS];
    let mut vectors = [&rows[..steps]; ROWS];
    for (row, vector) in vectors.iter_mut().enumerate() {
        *vector = &rows[row * steps..][..steps];
    }
    let mut panels = [&weights[..steps]; BLOCKS];
    for (block, panel) in panels.iter_mut().enumerate() {
        *panel = &weights[block * steps..][..steps];
    }
    for step in 0..steps {
        for (row, vector) in vectors.iter().enumerate() {
            let quad = _mm512_set1_epi32(i32::from_ne_bytes(vector[step]));
            for (sum, panel) in sums[row].iter_mut().zip(&panels) {
                *sum = _mm512_dpbusd_epi32(*sum, quad, panel[step]);
            }
        }
    }
    sums
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store_avx512(register: __m512i) -> [i32; LANES] {
    // SAFETY: both are 64 bytes without padding, and every pattern of bits is valid in both.
    unsafe { std::mem::transmute::<__m512i, [i32; LANES]>(register) }
}
