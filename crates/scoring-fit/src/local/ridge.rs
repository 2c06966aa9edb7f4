//! One adjusted score, drawn from the score as it is read to what reviewers gave: ridge regression of what is left over.
//!
//! What moves: the intercept freely, the factors against a penalty that is the same for all inputs, whatever their
//! spread. The strength of the penalty is chosen by cross-validation, the strongest among equals.

use assay_scoring::{INPUTS, Line};

use crate::random::folds;

/// Strengths that are tried; the first one leaves next to nothing but the intercept free.
const STRENGTHS: [f64; 8] = [100_000.0, 3_000.0, 1_000.0, 300.0, 100.0, 30.0, 10.0, 3.0];
/// Parts of the cross-validation.
const FOLDS: usize = 5;
/// Times that the parts are dealt anew: which strength is best depends on them where labels are few.
const REPEATS: u64 = 5;
/// Seed of the first deal.
const SEED: u64 = 31;
/// Added to the spread of every input: one that is nearly the same everywhere explains nothing.
const LEAST_SPREAD: f64 = 0.05;
/// The engine refuses weights with a larger number.
const LARGEST: f64 = 10.0;
/// Steps of the solver. In exact arithmetic as many as there are inputs are enough.
const STEPS: usize = 4 * INPUTS;
/// Places that a weights file keeps.
const SCALE: f64 = 100_000.0;

type Vector = [f64; INPUTS];

/// A labelled conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub inputs: Vector,
    /// 1–5.
    pub target: f64,
}

/// The line for the score that is input `index`, fitted to the rows. Without any it stays as shipped.
pub(super) fn fit(rows: &[Row], index: usize) -> Line {
    let line = solve(rows, index, best_strength(rows, index));
    let is_sound = line.factors.iter().chain([&line.intercept]).all(|factor| factor.abs() <= LARGEST);
    if is_sound { line } else { solve(rows, index, STRENGTHS[0]) }
}

/// The strength with the least squared error on parts that were left out.
fn best_strength(rows: &[Row], index: usize) -> f64 {
    let mut best = (f64::INFINITY, STRENGTHS[0]);
    for strength in STRENGTHS {
        let error =
            (0..REPEATS).map(|repeat| error_left_out(rows, index, strength, SEED + repeat)).sum::<f64>();
        if error < best.0 - 1e-9 {
            best = (error, strength);
        }
    }
    best.1
}

fn error_left_out(rows: &[Row], index: usize, strength: f64, seed: u64) -> f64 {
    let dealt = folds(rows.len(), FOLDS, seed);
    let mut error = 0.0;
    for fold in 0..FOLDS {
        let part = |inside: bool| -> Vec<Row> {
            let dealt = rows.iter().zip(&dealt).filter(|(_, dealt)| (**dealt == fold) == inside);
            dealt.map(|(row, _)| *row).collect()
        };
        let line = solve(&part(false), index, strength);
        error += part(true).iter().map(|row| square(row.target - line.apply(&row.inputs))).sum::<f64>();
    }
    error
}

/// The line with the least squared error plus `strength` times the square of what standardised factors move.
fn solve(rows: &[Row], index: usize, strength: f64) -> Line {
    let kept = Line::keeping(index);
    if rows.is_empty() {
        return kept;
    }
    let count = rows.len() as f64;
    let left_over = |row: &Row| row.target - kept.apply(&row.inputs);
    let mean_left = rows.iter().map(left_over).sum::<f64>() / count;
    let means = sum(rows.iter().map(|row| row.inputs)).map(|sum| sum / count);
    let squares = sum(rows.iter().map(|row| pair(row.inputs, means, |input, mean| square(input - mean))));
    let spreads = squares.map(|sum| (sum / count).sqrt() + LEAST_SPREAD);
    let mut matrix = [[0.0; INPUTS]; INPUTS];
    for (place, entries) in matrix.iter_mut().enumerate() {
        if let Some(diagonal) = entries.get_mut(place) {
            *diagonal = strength;
        }
    }
    let mut goal = [0.0; INPUTS];
    for row in rows {
        let column = pair(pair(row.inputs, means, |input, mean| input - mean), spreads, |value, spread| {
            value / spread
        });
        for (entries, value) in matrix.iter_mut().zip(column) {
            *entries = pair(*entries, column, |entry, other| entry + value * other);
        }
        goal = pair(goal, column, |goal, value| goal + value * (left_over(row) - mean_left));
    }
    let moved = pair(conjugate_gradients(&matrix, goal), spreads, |moved, spread| moved / spread);
    Line {
        intercept: rounded(mean_left - dot(moved, means)),
        factors: pair(kept.factors, moved, |kept, moved| rounded(kept + moved)),
    }
}

/// Solves a system with a symmetric and positive matrix.
fn conjugate_gradients(matrix: &[Vector; INPUTS], goal: Vector) -> Vector {
    let mut found = [0.0; INPUTS];
    let (mut rest, mut direction) = (goal, goal);
    let mut left = dot(rest, rest);
    let enough = left * 1e-24;
    for _ in 0..STEPS {
        if left <= enough {
            break;
        }
        let image = matrix.map(|entries| dot(entries, direction));
        let step = left / dot(direction, image);
        found = pair(found, direction, |found, direction| found + step * direction);
        rest = pair(rest, image, |rest, image| rest - step * image);
        let next = dot(rest, rest);
        direction = pair(rest, direction, |rest, direction| rest + next / left * direction);
        left = next;
    }
    found
}

fn pair(one: Vector, other: Vector, join: impl Fn(f64, f64) -> f64) -> Vector {
    let mut joined = one;
    for (value, other) in joined.iter_mut().zip(other) {
        *value = join(*value, other);
    }
    joined
}

fn sum(vectors: impl Iterator<Item = Vector>) -> Vector {
    vectors.fold([0.0; INPUTS], |sum, vector| pair(sum, vector, |one, other| one + other))
}

fn dot(one: Vector, other: Vector) -> f64 {
    pair(one, other, |one, other| one * other).iter().sum()
}

const fn square(value: f64) -> f64 {
    value * value
}

/// Rounded to the places that a weights file keeps, without a negative zero.
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
    fn reviewers_who_agree_with_the_reading_change_nothing() {
        for index in 0..3 {
            assert_eq!(fit(&rows(|inputs| inputs[index]), index), Line::keeping(index));
            assert_eq!(fit(&[], index), Line::keeping(index));
        }
    }

    #[test]
    fn stricter_reviewers_move_the_intercept_alone() {
        let line = fit(&rows(|inputs| inputs[1] - 0.75), 1);
        assert_eq!(line, Line { intercept: -0.75, ..Line::keeping(1) });
    }

    #[test]
    fn what_reviewers_look_at_beside_the_reading_is_found() {
        let line = fit(&rows(|inputs| 0.5 + 0.6 * inputs[0] + 0.9 * inputs[3]), 0);
        let expected = [0.6, 0.0, 0.0, 0.9, 0.0];
        assert!((line.intercept - 0.5).abs() < 0.05, "{line:?}");
        for (found, expected) in line.factors.iter().zip(expected) {
            assert!((found - expected).abs() < 0.05, "{line:?}");
        }
    }

    #[test]
    fn the_solution_meets_the_normal_equations() {
        let mut matrix = [[0.1; INPUTS]; INPUTS];
        for (place, entries) in matrix.iter_mut().enumerate() {
            entries[place] = 1.0 + place as f64;
        }
        let goal = [1.0, -2.0, 0.5, 0.0, 3.0];
        let found = conjugate_gradients(&matrix, goal);
        for (entries, goal) in matrix.iter().zip(goal) {
            assert!((dot(*entries, found) - goal).abs() < 1e-9);
        }
    }
}
