//! Floating-point arithmetic in one fixed order, written so that compilers turn it into vector instructions.
//!
//! Every loop over sixteen numbers computes sixteen independent sums, so the vector width does not change the result.

use crate::lanes::{LANES, Lanes};

/// How many rows [`multiply_block`] multiplies at once: keys, or dimensions of the values.
pub(crate) const BLOCK: usize = 4;

/// `sums[i][lane]` = Σ `left[n][i] · right[n][lane]` over all n, added in ascending order.
///
/// The four sums are separate variables so that they stay in registers: as an array they are kept in memory, which takes
/// twice as long.
#[inline(always)]
pub(crate) fn multiply_block(left: &[[f32; BLOCK]], right: &[Lanes]) -> [Lanes; BLOCK] {
    let [mut first, mut second, mut third, mut fourth] = [[0.0; LANES]; BLOCK];
    for (left, Lanes(right)) in left.iter().zip(right) {
        add_scaled(&mut first, left[0], right);
        add_scaled(&mut second, left[1], right);
        add_scaled(&mut third, left[2], right);
        add_scaled(&mut fourth, left[3], right);
    }
    [Lanes(first), Lanes(second), Lanes(third), Lanes(fourth)]
}

#[inline(always)]
fn add_scaled(sums: &mut [f32; LANES], factor: f32, values: &[f32; LANES]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

/// 1.5 · 2²³: the sum of it and a small number is rounded to an integer, ties to even, and has this integer in its low
/// bits.
const ROUNDING: f32 = 12_582_912.0;

/// Sum of `values`, whose length is a multiple of sixteen.
#[inline(always)]
pub(crate) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    reduce_lanes(lanes, |left, right| left + right)
}

/// Largest magnitude in `values`, whose length is a multiple of sixteen.
#[inline(always)]
fn max_magnitude(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = max(*lane, value.abs());
        }
    }
    reduce_lanes(lanes, max)
}

/// Reduces sixteen lanes pairwise to one value.
#[inline(always)]
fn reduce_lanes(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Deterministic maximum: `f32::max` does not specify which of +0 and −0 it returns.
#[inline(always)]
pub(crate) fn max(left: f32, right: f32) -> f32 {
    if right > left { right } else { left }
}

/// e to the power of `x`, for `x` up to 0; within 2 units in the last place, and never 0.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f32) -> f32 {
    // The result of a smaller number would not be a normal number.
    let x = max(x, -87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUNDING;
    let exponent = rounded.to_bits().wrapping_sub(ROUNDING.to_bits());
    let whole = rounded - ROUNDING;
    // ln 2 in two parts, so that the remainder is exact.
    let remainder = (x - whole * 0.693_359_4) - whole * -2.121_944_4e-4;
    // The polynomial of `expf` in the Cephes library.
    let series = 1.987_569_1e-4;
    let series = series * remainder + 1.398_199_9e-3;
    let series = series * remainder + 8.333_452e-3;
    let series = series * remainder + 4.166_579_6e-2;
    let series = series * remainder + 0.166_666_66;
    let series = series * remainder + 0.5;
    let fraction = series * (remainder * remainder) + remainder + 1.0;
    // 2 to the power of `exponent`: 127 is the bias of the exponent of an f32, above 23 bits of fraction.
    fraction * f32::from_bits(exponent.wrapping_add(127) << 23)
}

/// Softmax without the division: exponentiates the scores and returns 1 / sum for each lane.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [Lanes]) -> Lanes {
    let mut largest = [f32::MIN; LANES];
    for Lanes(scores) in &*scores {
        for (largest, score) in largest.iter_mut().zip(scores) {
            *largest = max(*largest, *score);
        }
    }
    let mut sums = [0.0; LANES];
    for Lanes(scores) in scores {
        for ((score, largest), sum) in scores.iter_mut().zip(&largest).zip(&mut sums) {
            *score = exp_nonpositive(*score - largest);
            *sum += *score;
        }
    }
    Lanes(sums.map(|sum| 1.0 / sum))
}

/// The Gaussian error linear unit, with the error function of Abramowitz and Stegun, 7.1.26 (error below 1.5e-7).
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    let scaled = x * std::f32::consts::FRAC_1_SQRT_2;
    let magnitude = scaled.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * magnitude);
    let series = 1.061_405_4;
    let series = series * t + -1.453_152;
    let series = series * t + 1.421_413_8;
    let series = series * t + -0.284_496_72;
    let series = series * t + 0.254_829_6;
    let erf = 1.0 - series * t * exp_nonpositive(-(magnitude * magnitude));
    0.5 * x * (1.0 + erf.copysign(scaled))
}

/// Layer normalisation: each row to mean 0 and variance 1, then times `weight` plus `bias`.
#[inline(always)]
pub(crate) fn normalise_rows(rows: &mut [f32], weight: &[f32], bias: &[f32], epsilon: f32) {
    let width = weight.len();
    for row in rows.chunks_exact_mut(width) {
        let mean = sum(row) / width as f32;
        let mut squares = [0.0; LANES];
        for chunk in row.as_chunks_mut::<LANES>().0 {
            for (square, value) in squares.iter_mut().zip(chunk) {
                *value -= mean;
                *square += *value * *value;
            }
        }
        let variance = reduce_lanes(squares, |left, right| left + right) / width as f32;
        let factor = 1.0 / (variance + epsilon).sqrt();
        for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *value = *value * factor * weight + bias;
        }
    }
}

/// Quantises a row to integers from −127 to 127 and returns the scale, which is never 0.
#[inline(always)]
pub(crate) fn quantise_row<T>(row: &[f32], quantised: &mut [T], store: impl Fn(i32) -> T) -> f32 {
    let largest = max(1e-9, max_magnitude(row));
    let factor = 127.0 / largest;
    for (slot, value) in quantised.iter_mut().zip(row) {
        let bits = (value * factor + ROUNDING).to_bits();
        *slot = store(bits.wrapping_sub(ROUNDING.to_bits()).cast_signed());
    }
    largest / 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_2_ulp_and_never_zero() {
        for step in 0..=87_000 {
            let x = -(step as f32) / 1000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp_nonpositive(x)) - exact).abs() / exact;
            assert!(error < 2.4e-7, "{x}: {error}");
        }
        assert!(exp_nonpositive(-1e30) > 0.0);
        assert_eq!(exp_nonpositive(0.0), 1.0);
    }

    #[test]
    fn gelu_matches_table_of_normal_distribution() {
        // x · Φ(x), Φ from a table of the normal distribution.
        let table =
            [(-3.0, -0.004_049_7), (-1.0, -0.158_655_3), (0.0, 0.0), (0.5, 0.345_731), (2.0, 1.954_5)];
        for (x, expected) in table {
            assert!((gelu(x) - expected).abs() < 1e-6, "{x}: {}", gelu(x));
        }
    }

    #[test]
    fn quantisation_rounds_halves_to_even() {
        let mut row = [0.0; LANES];
        row[..7].copy_from_slice(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -127.0]);
        let mut quantised = [0; LANES];
        let scale = quantise_row(&row, &mut quantised, |value| value);
        assert_eq!(scale, 1.0);
        assert_eq!(quantised[..7], [127, 0, 2, 2, 0, -2, -127]);
    }
}
