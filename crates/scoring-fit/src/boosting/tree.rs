//! Growing one monotone tree.

use assay_scoring::weights_file::{LEAF_UNIT, SplitWeights, TreeWeights};

use super::BoostingParameters;
use super::bins::Binned;

/// What a tree is grown on: slope and weight of the squared error of each example.
pub(super) struct Grower<'g> {
    pub binned: &'g Binned,
    pub signs: &'g [f64],
    pub parameters: &'g BoostingParameters,
    pub slopes: &'g [f64],
    pub weights: &'g [f64],
}

/// Slope and weight of some examples.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    slope: f64,
    weight: f64,
}

/// Where the value of a leaf must lie, so that the tree stays monotone.
#[derive(Debug, Clone, Copy)]
struct Range {
    least: f64,
    most: f64,
}

/// A leaf that may still be split.
struct Leaf {
    examples: Vec<usize>,
    range: Range,
    value: f64,
    best: Option<Candidate>,
    /// The split above it, and whether it lies on its higher side.
    parent: Option<(usize, bool)>,
}

/// The best way to split a leaf.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    gain: f64,
    feature: usize,
    bin: usize,
    low: f64,
    high: f64,
}

/// A split whose targets are not known yet.
struct Split {
    feature: usize,
    threshold: f64,
    low: i64,
    high: i64,
}

impl Grower<'_> {
    /// Grows a tree and adds its leaves to `sums`, by example; `None` when no split gains anything.
    pub(super) fn grow(&self, sums: &mut [i64]) -> Option<TreeWeights> {
        let unbound = Range { least: f64::NEG_INFINITY, most: f64::INFINITY };
        let mut leaves = vec![self.leaf((0..self.slopes.len()).collect(), unbound, 0.0, None)];
        let mut splits: Vec<Split> = Vec::new();
        while leaves.len() < self.parameters.most_leaves {
            let Some((index, candidate)) = best(&leaves) else {
                break;
            };
            let leaf = leaves.remove(index);
            let (low, high) = self.split(leaf, candidate, &mut splits)?;
            leaves.push(low);
            leaves.push(high);
        }
        if splits.is_empty() {
            return None;
        }
        let mut written = Vec::with_capacity(leaves.len());
        for (index, leaf) in leaves.iter().enumerate() {
            let value = (self.parameters.learning_rate * leaf.value / LEAF_UNIT).round() as i64;
            written.push(value);
            for example in &leaf.examples {
                if let Some(sum) = sums.get_mut(*example) {
                    *sum += value;
                }
            }
            aim(&mut splits, leaf.parent, -1 - index as i64);
        }
        let splits =
            splits.iter().map(|split| SplitWeights(split.feature, split.threshold, split.low, split.high));
        Some(TreeWeights(splits.collect(), written))
    }

    fn leaf(&self, examples: Vec<usize>, range: Range, value: f64, parent: Option<(usize, bool)>) -> Leaf {
        let best = self.best_split(&examples, range, value);
        Leaf { examples, range, value, best, parent }
    }

    fn split(&self, leaf: Leaf, candidate: Candidate, splits: &mut Vec<Split>) -> Option<(Leaf, Leaf)> {
        let Candidate { feature, bin, low, high, .. } = candidate;
        let threshold = *self.binned.edges.get(feature)?.get(bin)?;
        let place = (self.binned.offsets.get(feature)? + bin) as u32;
        let index = splits.len();
        aim(splits, leaf.parent, index as i64);
        splits.push(Split { feature, threshold, low: 0, high: 0 });
        let is_low = |example: &usize| self.binned.row(*example).get(feature).is_some_and(|at| *at <= place);
        let (lower, higher): (Vec<usize>, Vec<usize>) = leaf.examples.iter().copied().partition(is_low);
        let middle = f64::midpoint(low, high);
        let (below, above) = (Range { most: middle, ..leaf.range }, Range { least: middle, ..leaf.range });
        let raises = self.signs.get(feature).is_some_and(|sign| *sign > 0.0);
        let (low_range, high_range) = if raises { (below, above) } else { (above, below) };
        Some((
            self.leaf(lower, low_range, low, Some((index, false))),
            self.leaf(higher, high_range, high, Some((index, true))),
        ))
    }

    /// The split with the highest gain; among equal ones that of the first feature, at its lowest edge.
    fn best_split(&self, examples: &[usize], range: Range, value: f64) -> Option<Candidate> {
        let (histogram, total) = self.histogram(examples);
        let before = self.loss(total, value);
        let mut best: Option<Candidate> = None;
        for (feature, (edges, offset)) in self.binned.edges.iter().zip(&self.binned.offsets).enumerate() {
            let sign = self.signs.get(feature).copied().unwrap_or(1.0);
            let bins = histogram.get(*offset..offset + edges.len()).unwrap_or_default();
            let mut lower = Sums::default();
            for (bin, sums) in bins.iter().enumerate() {
                lower = Sums { slope: lower.slope + sums.slope, weight: lower.weight + sums.weight };
                let higher = Sums { slope: total.slope - lower.slope, weight: total.weight - lower.weight };
                if lower.weight < self.parameters.least_weight {
                    continue;
                }
                if higher.weight < self.parameters.least_weight {
                    break;
                }
                let (low, high) = (self.best_value(lower, range), self.best_value(higher, range));
                if (high - low) * sign < 0.0 {
                    continue;
                }
                let gain = before - self.loss(lower, low) - self.loss(higher, high);
                if gain > best.map_or(1e-9, |best| best.gain) {
                    best = Some(Candidate { gain, feature, bin, low, high });
                }
            }
        }
        best
    }

    fn histogram(&self, examples: &[usize]) -> (Vec<Sums>, Sums) {
        let mut histogram = vec![Sums::default(); self.binned.bin_count];
        let mut total = Sums::default();
        for example in examples {
            let slope = self.slopes.get(*example).copied().unwrap_or(0.0);
            let weight = self.weights.get(*example).copied().unwrap_or(0.0);
            total = Sums { slope: total.slope + slope, weight: total.weight + weight };
            for place in self.binned.row(*example) {
                if let Some(sums) = histogram.get_mut(*place as usize) {
                    sums.slope += slope;
                    sums.weight += weight;
                }
            }
        }
        (histogram, total)
    }

    /// The value with the least loss within the range.
    fn best_value(&self, sums: Sums, range: Range) -> f64 {
        (-sums.slope / (sums.weight + self.parameters.l2)).clamp(range.least, range.most)
    }

    fn loss(&self, sums: Sums, value: f64) -> f64 {
        sums.slope * value + 0.5 * (sums.weight + self.parameters.l2) * value * value
    }
}

/// The leaf with the best split, the first one among equals.
fn best(leaves: &[Leaf]) -> Option<(usize, Candidate)> {
    let mut best: Option<(usize, Candidate)> = None;
    for (index, leaf) in leaves.iter().enumerate() {
        if let Some(candidate) = leaf.best
            && best.is_none_or(|(_, best)| candidate.gain > best.gain)
        {
            best = Some((index, candidate));
        }
    }
    best
}

/// Lets the split above lead to `target`.
fn aim(splits: &mut [Split], parent: Option<(usize, bool)>, target: i64) {
    let Some((index, is_high)) = parent else {
        return;
    };
    if let Some(split) = splits.get_mut(index) {
        if is_high {
            split.high = target;
        } else {
            split.low = target;
        }
    }
}
