//! Similarity of texts by common words.

/// Jaccard index of two sorted sets, 0–1; 0 when either is empty.
pub(super) fn overlap(one: &[u64], other: &[u64]) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let common = common(one, other);
    common as f64 / (one.len() + other.len() - common) as f64
}

/// Whether two sorted sets have an element in common.
pub(crate) fn shares_any(one: &[u64], other: &[u64]) -> bool {
    common(one, other) > 0
}

/// Number of common elements of two sorted sets.
fn common(one: &[u64], other: &[u64]) -> usize {
    let (mut left, mut right, mut common) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(left), other.get(right)) {
        common += usize::from(a == b);
        left += usize::from(a <= b);
        right += usize::from(b <= a);
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_jaccard_index() {
        assert_eq!(overlap(&[1, 2, 3], &[2, 3, 4]), 0.5);
        assert_eq!(overlap(&[], &[1]), 0.0);
        assert!(shares_any(&[1, 5], &[5]) && !shares_any(&[1], &[2]));
    }
}
