//! Plain-text report of a benchmark.

use std::fmt;

use super::benchmark::{Benchmark, ConversationSet, Estimate, Figures};
use crate::table_text::TextTable;

impl fmt::Display for Benchmark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, conversations, without_scores, .. } = self;
        writeln!(
            formatter,
            "{}: {conversations} rated conversations, {without_scores} of them without scores; scorer {}, weights {}\n",
            part.name(),
            self.scorer_version,
            self.weights_sha256
        )?;
        writeln!(
            formatter,
            "scores: Spearman's rho with the mean of the raters; status, solver, charge: share equal to the majority of the raters; 95 % intervals\n"
        )?;
        let mut table = TextTable::new(&[
            "", "n", "accuracy", "", "effort", "", "handoff", "", "status", "", "solver", "", "charge", "",
        ]);
        for set in &self.sets {
            add_set(&mut table, &set.name, set);
        }
        for set in &self.languages {
            add_set(&mut table, &format!("language {}", set.name), set);
        }
        writeln!(formatter, "{}", table.text())?;
        writeln!(formatter, "confidence of the resolution, and how often its status is right\n")?;
        write!(formatter, "{}", reliability(self))
    }
}

fn add_set(table: &mut TextTable, name: &str, set: &ConversationSet) {
    table.row(row(name.to_owned(), set.conversations.to_string(), &set.scorer));
    if let Some(raters) = &set.raters {
        // Conversations with a second rating; fewer of them have scores than a status.
        let counts = [raters.resolution_accuracy, raters.status];
        let most = counts.iter().flatten().map(|found| found.conversations).max().unwrap_or(0);
        table.row(row("  raters among themselves".to_owned(), most.to_string(), raters));
    }
}

fn row(name: String, count: String, figures: &Figures) -> Vec<String> {
    let Figures { resolution_accuracy, interaction_effort, handoff_smoothness, status, solver, charge } =
        figures;
    let all = [resolution_accuracy, interaction_effort, handoff_smoothness, status, solver, charge];
    let cells = all.into_iter().flat_map(|found| match found {
        Some(Estimate { value, low, high, .. }) => [format!("{value:.3}"), format!("[{low:.2}, {high:.2}]")],
        None => ["-".to_owned(), String::new()],
    });
    [name, count].into_iter().chain(cells).collect()
}

fn reliability(benchmark: &Benchmark) -> String {
    let mut table = TextTable::new(&["confidence", "n", "stated", "right"]);
    for band in &benchmark.reliability {
        let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"));
        table.row(vec![
            format!("{:.1}-{:.1}", band.from, band.to),
            band.conversations.to_string(),
            share(band.stated),
            share(band.right),
        ]);
    }
    table.text()
}
