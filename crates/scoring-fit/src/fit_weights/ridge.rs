//! Ridge regression of the residual between the shipped score and the reviewers' scores.
//!
//! The intercept is free; the factors of the standardised inputs are penalised equally. The penalty is chosen by
//! cross-validation, the strongest on a tie.

use assay_scoring::{INPUTS, LinearModel};

use crate::random::split;

/// Candidate penalties; with the first one only the intercept moves.
const PENALTIES: [f64; 8] = [100_000.0, 3_000.0, 1_000.0, 300.0, 100.0, 30.0, 10.0, 3.0];
/// Folds of the cross-validation.
const FOLDS: usize = 5;
/// Repetitions with other folds: with few labels the best penalty depends on the folds.
const REPEATS: u64 = 5;
/// Seed of the first repetition.
const SEED: u64 = 31;
/// Added to the standard deviation of every input: a nearly constant input explains nothing.
const MIN_SPREAD: f64 = 0.05;
/// The engine refuses larger weights.
const MAX_FACTOR: f64 = 10.0;
/// Iterations of the solver. In exact arithmetic [`INPUTS`] are enough.
const MAX_ITERATIONS: usize = 4 * INPUTS;
/// Weights are rounded to multiples of `1 / SCALE`.
const SCALE: f64 = 100_000.0;

type Vector = [f64; INPUTS];

/// A labelled conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub inputs: Vector,
    /// 1–5.
    pub target: f64,
}

/// Fits the score whose shipped value is input `index`. Without rows it stays as shipped.
pub(super) fn fit(rows: &[Row], index: usize) -> LinearModel {
    let model = solve(rows, index, best_penalty(rows, index));
    let is_within_limit =
        model.factors.iter().chain([&model.intercept]).all(|factor| factor.abs() <= MAX_FACTOR);
    if is_within_limit { model } else { solve(rows, index, PENALTIES[0]) }
}

/// The penalty with the least squared error on held-out folds.
fn best_penalty(rows: &[Row], index: usize) -> f64 {
    let mut best = (f64::INFINITY, PENALTIES[0]);
    for penalty in PENALTIES {
        let error = (0..REPEATS)
            .map(|repeat| cross_validation_error(rows, index, penalty, SEED + repeat))
            .sum::<f64>();
        if error < best.0 - 1e-9 {
            best = (error, penalty);
        }
    }
    best.1
}

fn cross_validation_error(rows: &[Row], index: usize, penalty: f64, seed: u64) -> f64 {
    let mut error = 0.0;
    for (others, fold) in split(rows, FOLDS, seed) {
        let model = solve(&others, index, penalty);
        error += fold.iter().map(|row| square(row.target - model.apply(&row.inputs))).sum::<f64>();
    }
    error
}

/// Least squared error plus `penalty` times the squared change of the standardised factors.
fn solve(rows: &[Row], index: usize, penalty: f64) -> LinearModel {
    let shipped = LinearModel::identity(index);
    if rows.is_empty() {
        return shipped;
    }
    let count = rows.len() as f64;
    let residual = |row: &Row| row.target - shipped.apply(&row.inputs);
    let mean_residual = rows.iter().map(residual).sum::<f64>() / count;
    let means = sum(rows.iter().map(|row| row.inputs)).map(|sum| sum / count);
    let squares = sum(rows.iter().map(|row| combine(row.inputs, means, |input, mean| square(input - mean))));
    let spreads = squares.map(|sum| (sum / count).sqrt() + MIN_SPREAD);
    let mut matrix = [[0.0; INPUTS]; INPUTS];
    for (place, entries) in matrix.iter_mut().enumerate() {
        if let Some(diagonal) = entries.get_mut(place) {
            *diagonal = penalty;
        }
    }
    let mut rhs = [0.0; INPUTS];
    for row in rows {
        let centred = combine(row.inputs, means, |input, mean| input - mean);
        let standardised = combine(centred, spreads, |value, spread| value / spread);
        for (entries, value) in matrix.iter_mut().zip(standardised) {
            *entries = combine(*entries, standardised, |entry, other| entry + value * other);
        }
        rhs = combine(rhs, standardised, |rhs, value| rhs + value * (residual(row) - mean_residual));
    }
    let change = combine(conjugate_gradients(&matrix, rhs), spreads, |change, spread| change / spread);
    LinearModel {
        intercept: rounded(mean_residual - dot(change, means)),
        factors: combine(shipped.factors, change, |shipped, change| rounded(shipped + change)),
    }
}

/// Solves a system with a symmetric positive-definite matrix by conjugate gradients.
fn conjugate_gradients(matrix: &[Vector; INPUTS], rhs: Vector) -> Vector {
    let mut found = [0.0; INPUTS];
    let (mut residual, mut direction) = (rhs, rhs);
    let mut residual_norm = dot(residual, residual);
    let tolerance = residual_norm * 1e-24;
    for _ in 0..MAX_ITERATIONS {
        if residual_norm <= tolerance {
            break;
        }
        let image = matrix.map(|entries| dot(entries, direction));
        let step = residual_norm / dot(direction, image);
        found = combine(found, direction, |found, direction| found + step * direction);
        residual = combine(residual, image, |residual, image| residual - step * image);
        let next = dot(residual, residual);
        direction =
            combine(residual, direction, |residual, direction| residual + next / residual_norm * direction);
        residual_norm = next;
    }
    found
}

fn combine(one: Vector, other: Vector, join: impl Fn(f64, f64) -> f64) -> Vector {
    let mut joined = one;
    for (value, other) in joined.iter_mut().zip(other) {
        *value = join(*value, other);
    }
    joined
}

fn sum(vectors: impl Iterator<Item = Vector>) -> Vector {
    vectors.fold([0.0; INPUTS], |sum, vector| combine(sum, vector, |one, other| one + other))
}

fn dot(one: Vector, other: Vector) -> f64 {
    combine(one, other, |one, other| one * other).iter().sum()
}

const fn square(value: f64) -> f64 {
    value * value
}

/// Rounds to the precision of a weights file, without a negative zero.
fn rounded(value: f64) -> f64 {
    let rounded = (value * SCALE).round() / SCALE;
    if rounded == 0.0 { 0.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(target: impl Fn(&Vector) -> f64) -> Vec<Row> {
        let inputs = |index: u32| {
            let at = |prime: u32| f64::from(index * prime % 41) / 41.0;
            [1.0 + 4.0 * at(7), 1.0 + 4.0 * at(11), 1.0 + 4.0 * at(17), at(23), at(29)]
        };
        (0..200).map(inputs).map(|inputs| Row { target: target(&inputs), inputs }).collect()
    }

    #[test]
    fn agreeing_reviewers_give_the_identity() {
        for index in 0..3 {
            assert_eq!(fit(&rows(|inputs| inputs[index]), index), LinearModel::identity(index));
            assert_eq!(fit(&[], index), LinearModel::identity(index));
        }
    }

    #[test]
    fn stricter_reviewers_move_only_the_intercept() {
        let model = fit(&rows(|inputs| inputs[1] - 0.75), 1);
        assert_eq!(model, LinearModel { intercept: -0.75, ..LinearModel::identity(1) });
    }

    #[test]
    fn dependence_on_other_inputs_is_found() {
        let model = fit(&rows(|inputs| 0.5 + 0.6 * inputs[0] + 0.9 * inputs[3]), 0);
        let expected = [0.6, 0.0, 0.0, 0.9, 0.0];
        assert!((model.intercept - 0.5).abs() < 0.05, "{model:?}");
        for (found, expected) in model.factors.iter().zip(expected) {
            assert!((found - expected).abs() < 0.05, "{model:?}");
        }
    }

    #[test]
    fn solution_satisfies_normal_equations() {
        let mut matrix = [[0.1; INPUTS]; INPUTS];
        for (place, entries) in matrix.iter_mut().enumerate() {
            entries[place] = 1.0 + place as f64;
        }
        let rhs = [1.0, -2.0, 0.5, 0.0, 3.0];
        let found = conjugate_gradients(&matrix, rhs);
        for (entries, rhs) in matrix.iter().zip(rhs) {
            assert!((dot(*entries, found) - rhs).abs() < 1e-9);
        }
    }
}
