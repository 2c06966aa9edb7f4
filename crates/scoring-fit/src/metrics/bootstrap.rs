//! Bootstrap confidence intervals.

use crate::random::SplitMix64;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 1_000;
/// Seed of the resamples.
const SEED: u64 = 20_260_601;

/// The 95 % percentile interval of a figure, by resamples with a fixed seed.
pub(crate) fn confidence_interval<T: Copy>(cases: &[T], figure: impl Fn(&[T]) -> f64) -> (f64, f64) {
    let mut random = SplitMix64::new(SEED);
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<T> =
                cases.iter().filter_map(|_| cases.get(random.below(cases.len())).copied()).collect();
            figure(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get((share * (RESAMPLES - 1) as f64).round() as usize).copied();
    (at(0.025).unwrap_or(0.0), at(0.975).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::spearman;

    #[test]
    fn interval_contains_value_and_is_deterministic() {
        let pairs: Vec<(f64, f64)> =
            (0..60).map(|index| (f64::from(index), f64::from(index * 7 % 60))).collect();
        let (low, high) = confidence_interval(&pairs, spearman);
        let rho = spearman(&pairs);
        assert!(low < rho && rho < high && high - low < 0.7, "{low} {rho} {high}");
        assert_eq!(confidence_interval(&pairs, spearman), (low, high));
    }

    #[test]
    fn interval_of_share_matches_binomial() {
        // Half of 100: the standard error is 5 points.
        let cases: Vec<bool> = (0..100).map(|index| index % 2 == 0).collect();
        let share = |cases: &[bool]| cases.iter().filter(|case| **case).count() as f64 / cases.len() as f64;
        let (low, high) = confidence_interval(&cases, share);
        assert!((low - 0.4).abs() < 0.021 && (high - 0.6).abs() < 0.021, "{low} {high}");
    }
}
