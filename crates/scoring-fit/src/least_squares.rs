//! Least squares with bounds and a prior: the linear part of a model.
//!
//! Minimises `Σ weight · (target − intercept − Σ coefficient · value)² + strength · Σ (coefficient − prior)²` over
//! coefficients within their bounds, by coordinate descent on the normal equations. The problem is strictly convex,
//! so the order of the coordinates changes how long it takes, not where it ends.

/// Sweeps, at most; far more than any real problem takes.
const MOST_SWEEPS: usize = 100_000;
/// A sweep that moves no coefficient by more is the last one.
const PRECISION: f64 = 1e-11;

/// What is known about a coefficient beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coefficient {
    pub least: f64,
    pub most: f64,
    /// Where it is drawn to.
    pub prior: f64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    pub intercept: f64,
    pub coefficients: Vec<f64>,
}

/// One observation: as many values as there are coefficients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation<'v> {
    pub values: &'v [f64],
    pub target: f64,
    pub weight: f64,
}

/// Solves the problem. Without observations the priors, within their bounds, are the solution.
pub(crate) fn solve(
    observations: &[Observation<'_>],
    coefficients: &[Coefficient],
    strength: f64,
) -> Solution {
    let normal = NormalEquations::of(observations, coefficients.len());
    let mut found: Vec<f64> =
        coefficients.iter().map(|known| known.prior.clamp(known.least, known.most)).collect();
    // Product of the Gram matrix and what was found, kept up to date.
    let mut product = normal.times(&found);
    for _ in 0..MOST_SWEEPS {
        let mut moved: f64 = 0.0;
        for (index, known) in coefficients.iter().enumerate() {
            moved = moved.max(normal.improve(index, *known, strength, &mut found, &mut product));
        }
        if moved < PRECISION {
            break;
        }
    }
    let drawn: f64 = normal.means.iter().zip(&found).map(|(mean, coefficient)| mean * coefficient).sum();
    Solution { intercept: normal.mean_target - drawn, coefficients: found }
}

/// The weighted problem with means taken out.
struct NormalEquations {
    size: usize,
    gram: Vec<f64>,
    right: Vec<f64>,
    means: Vec<f64>,
    mean_target: f64,
}

impl NormalEquations {
    fn of(observations: &[Observation<'_>], size: usize) -> Self {
        let total: f64 = observations.iter().map(|observation| observation.weight).sum();
        let share = |observation: &Observation<'_>| observation.weight / total;
        let mut means = vec![0.0; size];
        let mut mean_target = 0.0;
        for observation in observations {
            mean_target += share(observation) * observation.target;
            for (mean, value) in means.iter_mut().zip(observation.values) {
                *mean += share(observation) * value;
            }
        }
        let (mut gram, mut right) = (vec![0.0; size * size], vec![0.0; size]);
        let mut centred = vec![0.0; size];
        for observation in observations {
            for ((centred, value), mean) in centred.iter_mut().zip(observation.values).zip(&means) {
                *centred = value - mean;
            }
            let target = observation.target - mean_target;
            for ((row, right), one) in gram.chunks_exact_mut(size).zip(&mut right).zip(&centred) {
                let weighted = observation.weight * one;
                *right += weighted * target;
                for (sum, other) in row.iter_mut().zip(&centred) {
                    *sum += weighted * other;
                }
            }
        }
        Self { size, gram, right, means, mean_target }
    }

    fn row(&self, index: usize) -> &[f64] {
        self.gram.get(index * self.size..(index + 1) * self.size).unwrap_or_default()
    }

    fn times(&self, found: &[f64]) -> Vec<f64> {
        let row = |index| self.row(index).iter().zip(found).map(|(one, other)| one * other).sum();
        (0..self.size).map(row).collect()
    }

    /// Puts one coefficient where it is best while the others stay; by how much it moved.
    fn improve(
        &self,
        index: usize,
        known: Coefficient,
        strength: f64,
        found: &mut [f64],
        product: &mut [f64],
    ) -> f64 {
        let row = self.row(index);
        let (Some(own), Some(right), Some(sum), Some(current)) =
            (row.get(index), self.right.get(index), product.get(index), found.get(index).copied())
        else {
            return 0.0;
        };
        let curvature = own + strength;
        if curvature <= 0.0 {
            return 0.0;
        }
        let best = (right - (sum - own * current) + strength * known.prior) / curvature;
        let next = best.clamp(known.least, known.most);
        let step = next - current;
        if step != 0.0 {
            if let Some(coefficient) = found.get_mut(index) {
                *coefficient = next;
            }
            for (sum, entry) in product.iter_mut().zip(row) {
                *sum += entry * step;
            }
        }
        step.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn number(random: &mut SplitMix64) -> f64 {
        random.below(2_001) as f64 / 1_000.0 - 1.0
    }

    /// What is minimised, with the best intercept for these coefficients.
    fn objective(
        observations: &[Observation<'_>],
        known: &[Coefficient],
        strength: f64,
        found: &[f64],
    ) -> f64 {
        let rest = |observation: &Observation<'_>| {
            observation.target
                - observation.values.iter().zip(found).map(|(value, found)| value * found).sum::<f64>()
        };
        let total: f64 = observations.iter().map(|one| one.weight).sum();
        let intercept = observations.iter().map(|one| one.weight * rest(one)).sum::<f64>() / total;
        let errors: f64 = observations
            .iter()
            .map(|one| one.weight * (rest(one) - intercept) * (rest(one) - intercept))
            .sum();
        let drawn: f64 =
            known.iter().zip(found).map(|(known, found)| (found - known.prior) * (found - known.prior)).sum();
        errors + strength * drawn
    }

    #[test]
    fn nothing_on_a_fine_grid_is_better_than_the_solution() {
        let mut random = SplitMix64::new(3);
        for _ in 0..20 {
            let values: Vec<[f64; 2]> = (0..12).map(|_| [number(&mut random), number(&mut random)]).collect();
            let observations: Vec<Observation<'_>> = values
                .iter()
                .map(|values| Observation {
                    values,
                    target: 2.0 * number(&mut random),
                    weight: 1.5 + number(&mut random),
                })
                .collect();
            let known = [
                Coefficient { least: 0.0, most: 0.8, prior: 0.0 },
                Coefficient { least: 0.2, most: 1.0, prior: number(&mut random) },
            ];
            let solution = solve(&observations, &known, 0.7);
            let reached = objective(&observations, &known, 0.7, &solution.coefficients);
            for one in 0..=160 {
                for other in 0..=160 {
                    let tried = [f64::from(one) * 0.005, 0.2 + f64::from(other) * 0.005];
                    let value = objective(&observations, &known, 0.7, &tried);
                    assert!(reached <= value + 1e-9, "{tried:?}: {value} < {reached}: {solution:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_without_bounds_in_the_way_is_found_exactly() {
        let values: Vec<[f64; 1]> = (0..9).map(|index| [f64::from(index)]).collect();
        let observations: Vec<Observation<'_>> = values
            .iter()
            .map(|values| Observation { values, target: 1.5 + 0.25 * values[0], weight: 1.0 })
            .collect();
        let known = [Coefficient { least: 0.0, most: f64::INFINITY, prior: 0.0 }];
        let solution = solve(&observations, &known, 0.0);
        assert!((solution.coefficients[0] - 0.25).abs() < 1e-12 && (solution.intercept - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_strong_prior_stays_where_it_is() {
        let values = [[0.0], [1.0]];
        let observations = [
            Observation { values: &values[0], target: 1.0, weight: 1.0 },
            Observation { values: &values[1], target: 5.0, weight: 1.0 },
        ];
        let known = [Coefficient { least: 0.0, most: 9.0, prior: 0.5 }];
        let solution = solve(&observations, &known, 1e9);
        assert!((solution.coefficients[0] - 0.5).abs() < 1e-6, "{solution:?}");
    }
}
