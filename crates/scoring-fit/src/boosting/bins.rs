//! Values sorted into a few bins, so that a split is looked for among their edges only.

use super::BoostingExample;
use crate::rounding::rounded;

/// Bins of one feature, at most.
const MOST_BINS: usize = 64;

/// All examples with their values as bins.
#[derive(Debug)]
pub(super) struct Binned {
    /// By feature: upper edges of all bins but the last, ascending. A value belongs to the first bin whose edge it
    /// does not exceed.
    pub edges: Vec<Vec<f64>>,
    /// By feature: where its bins begin in a histogram.
    pub offsets: Vec<usize>,
    /// Bins of all features together.
    pub bin_count: usize,
    /// By example, then by feature: its place in a histogram.
    rows: Vec<u32>,
}

impl Binned {
    pub(super) fn of(examples: &[BoostingExample<'_>], features: usize) -> Self {
        let edges: Vec<Vec<f64>> = (0..features).map(|feature| edges(examples, feature)).collect();
        let mut bin_count = 0;
        let offsets: Vec<usize> = edges
            .iter()
            .map(|edges| {
                let offset = bin_count;
                bin_count += edges.len() + 1;
                offset
            })
            .collect();
        let mut rows = Vec::with_capacity(examples.len() * features);
        for example in examples {
            for ((value, edges), offset) in example.values.iter().zip(&edges).zip(&offsets) {
                rows.push((offset + edges.partition_point(|edge| edge < value)) as u32);
            }
        }
        Self { edges, offsets, bin_count, rows }
    }

    /// The places of an example in a histogram, by feature.
    pub(super) fn row(&self, example: usize) -> &[u32] {
        let width = self.edges.len();
        self.rows.get(example * width..(example + 1) * width).unwrap_or_default()
    }
}

/// The middles between neighbouring values, or between quantiles where there are too many. Rounded first and used
/// for sorting afterwards: what was fitted is what the file says.
fn edges(examples: &[BoostingExample<'_>], feature: usize) -> Vec<f64> {
    let mut values: Vec<f64> =
        examples.iter().filter_map(|example| example.values.get(feature).copied()).collect();
    values.sort_by(f64::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    let middle = |low: f64, high: f64| rounded((low + high) / 2.0);
    let mut edges: Vec<f64> = if distinct.len() <= MOST_BINS {
        distinct.windows(2).filter_map(|pair| Some(middle(*pair.first()?, *pair.last()?))).collect()
    } else {
        let places = (1..MOST_BINS).map(|bin| bin * values.len() / MOST_BINS);
        let neighbours = places.filter_map(|place| {
            let low = *values.get(place.checked_sub(1)?)?;
            let high = values.iter().skip(place).find(|value| **value > low)?;
            Some(middle(low, *high))
        });
        neighbours.collect()
    };
    edges.dedup();
    edges
}
