//! Multiplication in plain Rust, written so that compilers vectorise it.

use std::ops::Range;

use super::{Arithmetic, Matrix};
use crate::forward::{Input, Transformer, encode};
use crate::lanes::LANES;
use crate::workspace::{Workspace, resize};

/// Numbers whose products are summed in 16 bits: the low bytes of 256 pairs, up to 255 each, just fit.
const CHUNK: usize = 512;

/// Runs on every processor.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Arithmetic for Portable {
    type Activation = i16;
    /// As in the file: row-major.
    type Weights = Vec<u8>;
    const ROWS: usize = 1;

    #[inline(always)]
    fn activation(quantised: i32) -> i16 {
        quantised as i16
    }

    fn activations(workspace: &mut Workspace) -> &mut Vec<i16> {
        &mut workspace.i16_activations
    }

    fn pack(rows: &[u8], _inputs: usize) -> Vec<u8> {
        rows.to_vec()
    }

    fn multiply(
        self,
        matrix: &Matrix<Self>,
        outputs: Range<usize>,
        activations: &[i16],
        scales: &[f32],
        results: &mut Vec<f32>,
    ) {
        let (inputs, width) = (matrix.inputs, outputs.len());
        resize(results, scales.len() * width);
        let mut rows = vec![0_i16; LANES * inputs];
        for (index, block) in (outputs.start / LANES..outputs.end / LANES).enumerate() {
            // Widened once for all vectors.
            for (wide, byte) in rows.iter_mut().zip(&matrix.weights[block * LANES * inputs..]) {
                *wide = i16::from(byte.cast_signed());
            }
            let vectors = activations.chunks_exact(inputs).zip(scales);
            for ((vector, scale), results) in vectors.zip(results.chunks_exact_mut(width)) {
                let mut sums = [0; LANES];
                for (sums, rows) in sums.as_chunks_mut::<2>().0.iter_mut().zip(rows.chunks_exact(2 * inputs))
                {
                    *sums = dot_pair(vector, rows);
                }
                matrix.dequantise(block, &sums, *scale, &mut results[index * LANES..][..LANES]);
            }
        }
    }

    fn encode(transformer: &Transformer<Self>, input: Input<'_>, workspace: &mut Workspace) -> Vec<f32> {
        encode(transformer, input, workspace)
    }
}

/// Dot products of `vector` with two adjacent rows, all of the same even length.
///
/// Two products fit into 16 bits (2 · 127 · 128), and so do the sums of their low bytes and of their high bytes, so that
/// compilers use 16-bit vectors for the whole loop. Not inlined, so that the loop is optimised separately.
#[inline(never)]
fn dot_pair(vector: &[i16], rows: &[i16]) -> [i32; 2] {
    let (first, second) = rows.split_at(vector.len());
    let mut sums = [0; 2];
    let parts = vector.chunks(CHUNK).zip(first.chunks(CHUNK)).zip(second.chunks(CHUNK));
    for ((vector, first), second) in parts {
        // Each pair adds the products at the same position of both halves.
        let middle = vector.len() / 2;
        let (left, right) = vector.split_at(middle);
        let (first_left, first_right) = first.split_at(middle);
        let (second_left, second_right) = second.split_at(middle);
        let (mut low, mut high) = ([0_u16; 2], [0_i16; 2]);
        let numbers = left.iter().zip(right);
        let numbers = numbers.zip(first_left.iter().zip(first_right));
        let numbers = numbers.zip(second_left.iter().zip(second_right));
        for (((left, right), (first_left, first_right)), (second_left, second_right)) in numbers {
            let pair = left.wrapping_mul(*first_left).wrapping_add(right.wrapping_mul(*first_right));
            low[0] = low[0].wrapping_add(pair.cast_unsigned() & 0xff);
            high[0] = high[0].wrapping_add(pair >> 8);
            let pair = left.wrapping_mul(*second_left).wrapping_add(right.wrapping_mul(*second_right));
            low[1] = low[1].wrapping_add(pair.cast_unsigned() & 0xff);
            high[1] = high[1].wrapping_add(pair >> 8);
        }
        for (sum, (high, low)) in sums.iter_mut().zip(high.into_iter().zip(low)) {
            *sum += i32::from(high) * 256 + i32::from(low);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_products_do_not_overflow() {
        for length in [16, 32, 512, 528, 1536] {
            for (left, right) in [(127, -128), (127, 127), (-127, 127), (-127, -128), (1, -1), (-1, 1)] {
                let rows = [vec![right; length], vec![right / 2; length]].concat();
                let sums = dot_pair(&vec![left; length], &rows);
                let product = |right: i16| i32::from(left) * i32::from(right) * length as i32;
                assert_eq!(sums, [product(right), product(right / 2)]);
            }
        }
    }
}
