//! Before and after, on conversations that the weights in question had not seen.

use std::collections::BTreeMap;

use super::labelled_classes;
use crate::data::Reviewed;
use crate::evaluate::without_score;
use crate::metrics::{Agreement, Confusion};
use crate::rounding::rounded;
use crate::scored::{Dimension, ScoredExample, confusion, crossed_confusion, engine_agreement};
use crate::table_text::{TextTable, confusion as confusion_text};

/// Agreement of the shipped weights and of the adapted ones.
pub(super) struct Comparison {
    dimensions: Vec<(Dimension, Agreement, Agreement)>,
    classes: Option<(Confusion, Confusion)>,
    by_score: Option<(Confusion, Confusion)>,
}

impl Comparison {
    pub(super) fn of(before: &[ScoredExample], after: &[ScoredExample]) -> Self {
        let dimensions = Dimension::BOTH.into_iter().filter_map(|dimension| {
            Some((dimension, engine_agreement(before, dimension)?, engine_agreement(after, dimension)?))
        });
        let audit = |scored: &[ScoredExample]| confusion(scored, |example| Some(example.audit));
        // An adapted file has thresholds of its own where there are labels enough for them.
        let by_score = |scored: &[ScoredExample]| confusion(scored, |example| example.by_score);
        let adapted_by_score =
            labelled_classes(after).and_then(|_| crossed_confusion(after)).or_else(|| by_score(after));
        Self {
            dimensions: dimensions.collect(),
            classes: audit(before).zip(audit(after)),
            by_score: by_score(before).zip(adapted_by_score),
        }
    }

    /// Whether the adapted weights of a dimension agree less: in rho, weighted kappa and mean error together (drawing
    /// all scores to the middle lowers the error and kappa), or, where only classes were labelled, in their accuracy by
    /// the score.
    pub(super) fn is_worse(&self, dimension: Dimension) -> bool {
        let of_points = self.dimensions.iter().find(|(found, _, _)| *found == dimension);
        match of_points {
            Some((_, before, after)) => {
                let gain = |found: &Agreement| found.rho + found.kappa - found.error;
                gain(after) < gain(before) - 1e-9
            }
            None => self.by_score.is_some_and(|(before, after)| after.accuracy() < before.accuracy()),
        }
    }

    pub(super) fn text(
        &self,
        reviewed: &Reviewed,
        scored: &[ScoredExample],
        labelled: &[Dimension],
        adapted: &[Dimension],
    ) -> String {
        let mut text = format!("{}{}\n", reviewed.joined(), without_score(reviewed, scored));
        text.push_str("shipped weights, and adapted ones by cross-validation\n\n");
        let mut table = TextTable::new(&["", "n", "rho", "adapted", "kappa", "adapted", "MAE", "adapted"]);
        for (dimension, before, after) in &self.dimensions {
            table.row(vec![
                dimension.name().to_owned(),
                after.count.to_string(),
                format!("{:.3}", before.rho),
                format!("{:.3} [{:.2}, {:.2}]", after.rho, after.interval.0, after.interval.1),
                format!("{:.2}", before.kappa),
                format!("{:.2}", after.kappa),
                format!("{:.2}", before.error),
                format!("{:.2}", after.error),
            ]);
        }
        if !self.dimensions.is_empty() {
            text.push_str(&table.text());
        }
        for dimension in Dimension::BOTH.into_iter().filter(|dimension| !adapted.contains(dimension)) {
            let why = if labelled.contains(&dimension) {
                "the adapted weights agree less"
            } else {
                "it has too few labels"
            };
            text.push_str(&format!("{} stays as shipped: {why}\n", dimension.name()));
        }
        for (name, pair) in [("the audit", self.classes), ("the score", self.by_score)] {
            let Some((before, after)) = pair else {
                continue;
            };
            for (whose, found) in [("shipped", before), ("adapted", after)] {
                let accuracy = found.accuracy();
                text.push_str(&format!("\nresolution by {name}, {whose}: accuracy {accuracy:.3}\n"));
                text.push_str(&confusion_text(&found));
            }
        }
        text
    }

    /// For the manifest.
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        for (dimension, before, after) in &self.dimensions {
            for (whose, found) in [("shipped", before), ("adapted", after)] {
                let name = |figure: &str| format!("{}: {figure}, {whose}", dimension.name());
                figures.insert(name("rho"), rounded(found.rho));
                figures.insert(name("weighted kappa"), rounded(found.kappa));
                figures.insert(name("mean error"), rounded(found.error));
            }
        }
        figures
    }
}
