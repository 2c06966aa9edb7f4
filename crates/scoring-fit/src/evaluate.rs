//! How well a scorer agrees with labels, as a report.

use assay_scoring::Scorer;

use crate::FitError;
use crate::data::Reviewed;
use crate::metrics::{Agreement, Confusion};
use crate::scored::{Dimension, ScoredExample, bare_agreement, confusion, engine_agreement, score};
use crate::table_text::{TextTable, confusion as confusion_text};

/// Measures any scorer on labelled conversations: rho with an interval, error and weighted kappa of both dimensions,
/// and the confusion of whether the issue was solved.
///
/// # Errors
/// When no conversation has a label and a score.
pub fn evaluate(scorer: &Scorer, reviewed: &Reviewed) -> Result<String, FitError> {
    let scored = score(scorer, &reviewed.examples);
    if scored.is_empty() {
        return Err(FitError::NothingToMeasure { unmatched: reviewed.unmatched });
    }
    let mut text = format!("{}{}\n", reviewed.joined(), without_score(reviewed, &scored));
    text.push_str(&format!("weights {}\n\n", scorer.weights_sha256()));
    text.push_str(&agreements(&scored));
    text.push_str(&classes(&scored));
    Ok(text)
}

/// Says how many labelled conversations have no AXIS.
pub(crate) fn without_score(reviewed: &Reviewed, scored: &[ScoredExample]) -> String {
    match reviewed.examples.len() - scored.len() {
        0 => String::new(),
        count => format!("; {count} of them without a score, because no AI agent or no customer wrote"),
    }
}

fn agreements(scored: &[ScoredExample]) -> String {
    let mut table = TextTable::new(&["", "n", "rho [95 %]", "MAE", "kappa"]);
    let mut row = |name: String, agreement: Option<Agreement>| {
        if let Some(found) = agreement {
            table.row(vec![
                name,
                found.count.to_string(),
                format!("{:.3} [{:.2}, {:.2}]", found.rho, found.interval.0, found.interval.1),
                format!("{:.2}", found.error),
                format!("{:.2}", found.kappa),
            ]);
        }
    };
    for dimension in Dimension::BOTH {
        row(dimension.name().to_owned(), engine_agreement(scored, dimension));
        row(format!("{}, models alone", dimension.name()), bare_agreement(scored, dimension));
    }
    table.text()
}

fn classes(scored: &[ScoredExample]) -> String {
    let mut text = String::new();
    let mut add = |name: &str, found: Option<Confusion>| {
        if let Some(found) = found {
            let (all, mean) = (found.accuracy(), found.macro_accuracy());
            text.push_str(&format!("\n{name}: accuracy {all:.3}, mean over classes {mean:.3}\n"));
            text.push_str(&confusion_text(&found));
        }
    };
    add("resolution by the audit", confusion(scored, |example| Some(example.audit)));
    add("resolution by the score", confusion(scored, |example| example.by_score));
    text
}
