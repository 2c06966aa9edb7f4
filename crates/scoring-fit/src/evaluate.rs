//! Report on the agreement of a scorer with labels.

use assay_scoring::Scorer;

use crate::FitError;
use crate::data::ReviewedConversations;
use crate::scored::{Dimension, ScoredExample, agreement, confusion, score};
use crate::table_text::{TextTable, confusion_text};

/// Measures a scorer on labelled conversations: rho with an interval, error and weighted kappa of every score, and the
/// confusion matrix of the resolution.
///
/// # Errors
/// When no conversation has a label and a score.
pub fn evaluate(scorer: &Scorer, reviewed: &ReviewedConversations) -> Result<String, FitError> {
    let scored = score(scorer, &reviewed.examples);
    if scored.is_empty() {
        return Err(FitError::NothingToMeasure { unmatched: reviewed.unmatched });
    }
    let mut text = format!("{}{}\n", reviewed.counts_text(), without_score_text(reviewed, &scored));
    text.push_str(&format!("weights {}\n\n", scorer.weights_sha256()));
    text.push_str(&agreement_table(&scored));
    text.push_str(&resolution_report(&scored));
    Ok(text)
}

/// Number of labelled conversations without AXIS, as a clause; empty for none.
pub(crate) fn without_score_text(reviewed: &ReviewedConversations, scored: &[ScoredExample]) -> String {
    match reviewed.examples.len() - scored.len() {
        0 => String::new(),
        count => format!("; {count} of them without a score, because no AI agent or no customer wrote"),
    }
}

/// Confusion matrix of the resolution; empty when no label has a resolution.
pub(crate) fn resolution_report(scored: &[ScoredExample]) -> String {
    confusion(scored).map_or_else(String::new, |found| {
        let (all, mean) = (found.accuracy(), found.macro_accuracy());
        let title = format!("\nresolution by the audit: accuracy {all:.3}, mean over classes {mean:.3}\n");
        title + &confusion_text(&found)
    })
}

fn agreement_table(scored: &[ScoredExample]) -> String {
    let mut table = TextTable::new(&["", "n", "rho [95 %]", "MAE", "kappa"]);
    for dimension in Dimension::ALL {
        if let Some(found) = agreement(scored, dimension, Dimension::label) {
            table.row(vec![
                dimension.name().to_owned(),
                found.count.to_string(),
                format!("{:.3} [{:.2}, {:.2}]", found.rho, found.interval.0, found.interval.1),
                format!("{:.2}", found.error),
                format!("{:.2}", found.kappa),
            ]);
        }
    }
    table.text()
}
