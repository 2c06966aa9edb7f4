//! The figures of the shipped weights as text, with the goals beside them.

use assay_scoring::weights_file::WeightsFile;

use super::fitter::Fitter;
use super::measure::{Both, ClassRow, Measured, Row};
use crate::table_text::TextTable;

/// All tables.
pub(super) fn render(measured: &Measured<'_>, fitter: &Fitter, file: &WeightsFile) -> String {
    let mut text = String::new();
    text.push_str(
        "Spearman's rho with human labels [95 % interval]. `models`: what was fitted, alone; `engine`: with guards,\n\
         in tenths. MAE in points and quadratic weighted kappa are the engine's.\n\n",
    );
    text.push_str("Kept back from fitting; fitted on the train parts of all sets\n");
    text.push_str(&agreement_table(&measured.rows, |row| Some(row.kept_back), true));
    text.push_str("\nWithin the set, 5 folds\n");
    text.push_str(&agreement_table(&measured.rows, |row| Some(row.within), false));
    text.push_str("\nSet left out: fitted on the other sets alone\n");
    text.push_str(&agreement_table(&measured.rows, |row| row.unseen, false));
    if let Some(mean) = measured.unseen_mean().resolution_accuracy {
        let goal = fitter.table.unseen_goal;
        text.push_str(&format!("mean of resolution accuracy {mean:.3} (goal {goal:.2})\n"));
    }
    text.push_str("\nWas it resolved, three classes: accuracy (mean over classes)\n");
    text.push_str(&class_table(&measured.classes));
    if let Some(thresholds) = file.resolution {
        text.push_str(&format!(
            "by score: not resolved below {:.2}, resolved above {:.2}\n",
            thresholds.not_resolved_below, thresholds.resolved_above
        ));
    }
    for row in &measured.classes {
        text.push_str(&format!("\n{}, by the audit, kept back\n", row.data));
        text.push_str(&crate::table_text::confusion(&row.audit));
    }
    text
}

fn agreement_table(rows: &[Row<'_>], figures: impl Fn(&Row<'_>) -> Option<Both>, with_goals: bool) -> String {
    let mut table = TextTable::new(&["data", "dimension", "n", "models", "engine", "MAE", "kappa", "goal"]);
    for row in rows {
        let Some(Both { bare, engine }) = figures(row) else {
            continue;
        };
        let goal = row.goal.filter(|_| with_goals);
        table.row(vec![
            row.data.to_owned(),
            row.dimension.name().to_owned(),
            engine.count.to_string(),
            interval(bare.rho, bare.interval),
            interval(engine.rho, engine.interval),
            format!("{:.2}", engine.error),
            format!("{:.2}", engine.kappa),
            goal.map_or_else(String::new, |goal| format!("{goal:.2}")),
        ]);
    }
    table.text()
}

fn class_table(rows: &[ClassRow<'_>]) -> String {
    let mut table = TextTable::new(&["data", "audit", "by score", "within the set", "goal"]);
    for row in rows {
        let both = |confusion: &crate::metrics::Confusion| {
            format!("{:.3} ({:.3})", confusion.accuracy(), confusion.macro_accuracy())
        };
        table.row(vec![
            row.data.to_owned(),
            both(&row.audit),
            both(&row.by_score),
            both(&row.within),
            format!("{:.2}", row.goal),
        ]);
    }
    table.text()
}

fn interval(rho: f64, (low, high): (f64, f64)) -> String {
    format!("{rho:.3} [{low:.2}, {high:.2}]")
}
