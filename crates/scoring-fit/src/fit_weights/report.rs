//! Comparison before and after, on conversations outside the fit.

use super::Change;
use crate::data::ReviewedConversations;
use crate::evaluate::{resolution_report, without_score_text};
use crate::metrics::Agreement;
use crate::scored::{Dimension, ScoredExample, agreement};
use crate::table_text::TextTable;

/// Agreement of the shipped and of the adapted weights.
pub(super) struct Comparison {
    pub changes: Vec<Change>,
}

impl Comparison {
    pub(super) fn of(before: &[ScoredExample], after: &[ScoredExample]) -> Self {
        let changes = Dimension::ALL.into_iter().filter_map(|dimension| {
            let shipped = agreement(before, dimension, Dimension::target)?;
            Some(Change { dimension, shipped, adapted: agreement(after, dimension, Dimension::target)? })
        });
        Self { changes: changes.collect() }
    }

    /// Whether the adapted weights of a score agree better: by the sum of rho and weighted kappa minus the mean error,
    /// because shrinking all scores to the mean lowers the error, but kappa too.
    pub(super) fn is_better(&self, dimension: Dimension) -> bool {
        let gain = |found: &Agreement| found.rho + found.kappa - found.error;
        let change = self.changes.iter().find(|change| change.dimension == dimension);
        change.is_some_and(|change| gain(&change.adapted) > gain(&change.shipped) + 1e-9)
    }

    pub(super) fn text(
        &self,
        reviewed: &ReviewedConversations,
        scored: &[ScoredExample],
        labelled: &[Dimension],
        adapted: &[Dimension],
    ) -> String {
        let mut text = format!("{}{}\n", reviewed.counts_text(), without_score_text(reviewed, scored));
        text.push_str("shipped weights, and adapted ones by cross-validation\n\n");
        let mut table = TextTable::new(&["", "n", "rho", "adapted", "kappa", "adapted", "MAE", "adapted"]);
        for Change { dimension, shipped, adapted } in &self.changes {
            table.row(vec![
                dimension.name().to_owned(),
                adapted.count.to_string(),
                format!("{:.3}", shipped.rho),
                format!("{:.3} [{:.2}, {:.2}]", adapted.rho, adapted.interval.0, adapted.interval.1),
                format!("{:.2}", shipped.kappa),
                format!("{:.2}", adapted.kappa),
                format!("{:.2}", shipped.error),
                format!("{:.2}", adapted.error),
            ]);
        }
        text.push_str(&table.text());
        for dimension in Dimension::ALL.into_iter().filter(|dimension| !adapted.contains(dimension)) {
            let why = if labelled.contains(&dimension) {
                "the adapted weights do not agree better"
            } else {
                "it has too few labels"
            };
            text.push_str(&format!("{} stays as shipped: {why}\n", dimension.name()));
        }
        // Weights do not change the audit: one matrix holds for both.
        text.push_str(&resolution_report(scored));
        text
    }
}
