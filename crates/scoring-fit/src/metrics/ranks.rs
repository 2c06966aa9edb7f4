//! Spearman's rank correlation.

/// Spearman's rho: Pearson's correlation of the ranks, ties sharing their mean rank. 0 when either side is constant.
pub fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let one = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let other = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    // The mean of all ranks.
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let (mut common, mut square_one, mut square_other) = (0.0, 0.0, 0.0);
    for (one, other) in one.iter().zip(&other) {
        common += (one - mean) * (other - mean);
        square_one += (one - mean) * (one - mean);
        square_other += (other - mean) * (other - mean);
    }
    let scale = (square_one * square_other).sqrt();
    if scale > 0.0 { common / scale } else { 0.0 }
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|one, other| one.0 == other.0) {
        let shared = below as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for (_, index) in tied {
            if let Some(rank) = ranks.get_mut(*index) {
                *rank = shared;
            }
        }
        below += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rho_with_ties_matches_hand_computation() {
        // Ranks 1, 2.5, 2.5, 4 and 2, 1, 3, 4: common 3, squares 4.5 and 5.
        let pairs = [(1.0, 2.0), (2.0, 1.0), (2.0, 3.0), (3.0, 9.0)];
        assert!((spearman(&pairs) - 3.0 / (4.5_f64 * 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 3.0)]), 0.0);
    }
}
