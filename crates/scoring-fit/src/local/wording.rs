//! What words add: ridge regression of what the model leaves over, on hashed words and pairs of words.

use assay_scoring::FeatureReader;
use assay_scoring::weights_file::{MOST_WORDING_SHARE, WordingHead};

use super::{FOLD_SEED, FOLDS};
use crate::data::Example;
use crate::random::folds;
use crate::rounding::rounded;

/// Words are hashed into 2^13 buckets.
pub(super) const BITS: u32 = 13;
/// Strengths of the ridge that are tried.
const STRENGTHS: [f64; 3] = [3.0, 1.0, 0.3];
/// Shares of the words that are tried.
const SHARES: [f64; 2] = [MOST_WORDING_SHARE / 2.0, MOST_WORDING_SHARE];
/// Words are taken in when they lower the squared error at least to this share of it.
const WORTHWHILE: f64 = 0.99;
/// Weights below it are left out of the file.
const SMALLEST_WEIGHT: f64 = 1e-3;
/// Steps of the solver, at most.
const MOST_STEPS: usize = 200;
/// The solver ends when the square of what is left has fallen to this share.
const PRECISION: f64 = 1e-16;

/// The words of all examples, as sparse rows.
pub(super) struct Words(Vec<Vec<(u32, f64)>>);

impl Words {
    pub(super) fn of(reader: &FeatureReader, examples: &[Example]) -> Self {
        Self(examples.iter().map(|example| reader.wording(&example.conversation, BITS)).collect())
    }

    fn row(&self, index: usize) -> &[(u32, f64)] {
        self.0.get(index).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The head that explains most of `residuals`, beside `indices` into the words, on parts that were left out; `None`
/// when no head is worth it.
pub(super) fn fit_head(words: &Words, indices: &[usize], residuals: &[f64]) -> Option<WordingHead> {
    let dealt = folds(indices.len(), FOLDS, FOLD_SEED + 2);
    let without: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let mut best = (without * WORTHWHILE, None);
    for strength in STRENGTHS {
        let mut found: Vec<(f64, f64)> = Vec::with_capacity(indices.len());
        for fold in 0..FOLDS {
            let part = |inside: bool| -> Vec<(usize, f64)> {
                let pairs = indices.iter().zip(residuals).zip(&dealt);
                let inside = pairs.filter(|(_, dealt)| (**dealt == fold) == inside);
                inside.map(|((index, residual), _)| (*index, *residual)).collect()
            };
            let weights = ridge(words, &part(false), strength);
            found.extend(
                part(true).into_iter().map(|(index, residual)| (residual, dot(&weights, words.row(index)))),
            );
        }
        for share in SHARES {
            let error: f64 = found
                .iter()
                .map(|(residual, said)| (residual - share * said) * (residual - share * said))
                .sum();
            if error < best.0 {
                best = (error, Some((strength, share)));
            }
        }
    }
    let (strength, share) = best.1?;
    let pairs: Vec<(usize, f64)> = indices.iter().copied().zip(residuals.iter().copied()).collect();
    let weights = ridge(words, &pairs, strength);
    let kept = weights
        .into_iter()
        .zip(0u32..)
        .filter(|(weight, _)| weight.abs() >= SMALLEST_WEIGHT)
        .map(|(weight, bucket)| (bucket, rounded(weight)));
    // Rounded down: the share must not exceed what the engine allows.
    Some(WordingHead { share: (share * 1e5).floor() / 1e5, weights: kept.collect() })
}

/// Weights of all buckets that minimise the squared error and `strength` times their own square, by conjugate
/// gradients.
fn ridge(words: &Words, pairs: &[(usize, f64)], strength: f64) -> Vec<f64> {
    let size = 1usize << BITS;
    let mut weights = vec![0.0; size];
    let mut rest = vec![0.0; size];
    for (index, residual) in pairs {
        add(&mut rest, words.row(*index), *residual);
    }
    let mut direction = rest.clone();
    let mut left = square(&rest);
    let enough = left * PRECISION;
    for _ in 0..MOST_STEPS {
        if left <= enough {
            break;
        }
        let mut image: Vec<f64> = direction.iter().map(|value| strength * value).collect();
        for (index, _) in pairs {
            let row = words.row(*index);
            add(&mut image, row, dot(&direction, row));
        }
        let curvature: f64 = direction.iter().zip(&image).map(|(one, other)| one * other).sum();
        let step = left / curvature;
        for ((weight, rest), (direction, image)) in
            weights.iter_mut().zip(&mut rest).zip(direction.iter().zip(&image))
        {
            *weight += step * direction;
            *rest -= step * image;
        }
        let next = square(&rest);
        for (direction, rest) in direction.iter_mut().zip(&rest) {
            *direction = rest + next / left * *direction;
        }
        left = next;
    }
    weights
}

fn dot(weights: &[f64], row: &[(u32, f64)]) -> f64 {
    row.iter().map(|(bucket, value)| weights.get(*bucket as usize).map_or(0.0, |weight| weight * value)).sum()
}

fn add(sums: &mut [f64], row: &[(u32, f64)], factor: f64) {
    for (bucket, value) in row {
        if let Some(sum) = sums.get_mut(*bucket as usize) {
            *sum += factor * value;
        }
    }
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ridge_meets_the_normal_equations() {
        let words = Words(vec![vec![(1, 0.6), (5, 0.8)], vec![(1, 1.0)], vec![(5, 0.5), (9, 0.5)]]);
        let pairs = [(0, 1.0), (1, -0.5), (2, 0.25)];
        let weights = ridge(&words, &pairs, 0.4);
        for bucket in [1u32, 5, 9, 77] {
            let own = |index: usize| {
                words.row(index).iter().find(|(other, _)| *other == bucket).map_or(0.0, |(_, value)| *value)
            };
            let slope: f64 = pairs
                .iter()
                .map(|(index, residual)| own(*index) * (residual - dot(&weights, words.row(*index))))
                .sum();
            assert!((slope - 0.4 * weights[bucket as usize]).abs() < 1e-9, "{bucket}");
        }
    }

    #[test]
    fn words_that_explain_nothing_are_left_out_and_words_that_do_are_found() {
        let words = Words((0..60).map(|index| vec![(index % 2, 1.0)]).collect());
        let indices: Vec<usize> = (0..60).collect();
        let explained: Vec<f64> = (0..60).map(|index| if index % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let head = fit_head(&words, &indices, &explained).unwrap();
        assert!(head.share <= MOST_WORDING_SHARE && head.weights[0].1 > 0.5 && head.weights[1].1 < -0.5);
        let unexplained: Vec<f64> =
            (0..60).map(|index| if index / 2 % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(fit_head(&words, &indices, &unexplained), None);
    }
}
