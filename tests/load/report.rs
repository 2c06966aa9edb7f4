//! The result table: figure, limit in the same run, ratio and goal.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

/// Goal of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Minimum ratio of the figure to the limit.
    Ratio(f64),
    /// Maximum value.
    AtMost(f64),
    /// No goal.
    None,
}

/// A measured figure and its limit; one value per round.
pub struct Row {
    pub section: &'static str,
    pub what: String,
    pub unit: &'static str,
    pub ours: Vec<f64>,
    /// Name and values of the limit; without values the goal is the limit.
    pub limit: (String, Vec<f64>),
    pub goal: Goal,
}

impl Row {
    /// A figure with a limit measured in the same rounds.
    pub fn with_limit(
        section: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        (limit, values): (&str, &[f64]),
        goal: Goal,
    ) -> Self {
        let limit = (limit.to_owned(), values.to_vec());
        Self { section, what: what.into(), unit, ours: ours.to_vec(), limit, goal }
    }

    /// A figure with a goal only.
    pub fn without_limit(
        section: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        goal: Goal,
    ) -> Self {
        Self::with_limit(section, what, unit, ours, ("goal", &[]), goal)
    }

    /// Median of the ratios of the rounds: neighbours in time are compared with each other.
    fn ratio(&self) -> Option<f64> {
        let ratios = self.ours.iter().zip(&self.limit.1).map(|(ours, limit)| ours / limit);
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    fn reached(&self) -> Option<bool> {
        match self.goal {
            Goal::Ratio(goal) => Some(self.ratio()? >= goal),
            Goal::AtMost(goal) => Some(median(&self.ours) <= goal),
            Goal::None => None,
        }
    }

    fn line(&self, judges: bool) -> String {
        let limit = if self.limit.1.is_empty() {
            self.limit.0.clone()
        } else {
            format!("{} = {}", self.limit.0, number(median(&self.limit.1)))
        };
        let goal = match self.goal {
            Goal::Ratio(goal) => format!("ratio ≥ {goal}"),
            Goal::AtMost(goal) => format!("≤ {goal} {}", self.unit),
            Goal::None => String::new(),
        };
        let ratio = self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let reached = match self.reached().filter(|_| judges) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        format!(
            "| {} | {} | {} {} | {limit} | {ratio} | {goal} | {reached} |",
            self.section,
            self.what,
            number(median(&self.ours)),
            self.unit
        )
    }

    fn json(&self, judges: bool) -> Value {
        json!({
            "section": self.section, "what": self.what, "unit": self.unit, "rounds": self.ours,
            "median": median(&self.ours), "limit": self.limit.0, "limit_rounds": self.limit.1,
            "ratio": self.ratio(), "reached": self.reached().filter(|_| judges),
        })
    }
}

/// Everything that was measured.
pub struct Report {
    /// Whether the figures are long enough to judge goals.
    judges: bool,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// With `judges` false, goals are not judged.
    pub fn new(judges: bool) -> Self {
        Self { judges, rows: Vec::new(), notes: Vec::new() }
    }

    pub fn add(&mut self, row: Row) {
        println!("{}", row.line(self.judges));
        self.rows.push(row);
    }

    /// Adds a note on the figures, for example on CPU time.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        println!("{note}");
        self.notes.push(note);
    }

    /// Writes `target/bench/report.md` and `.json`, and prints the table.
    pub fn finish(self) -> Result<()> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../bench");
        fs::create_dir_all(&folder)?;
        let mut text = String::from(
            "| | what | measured | limit in the same run | ratio | goal | reached |\n|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line(self.judges));
        }
        text.push('\n');
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        println!("\n{text}");
        fs::write(folder.join("report.md"), text)?;
        let rows: Vec<Value> = self.rows.iter().map(|row| row.json(self.judges)).collect();
        let all = json!({"figures": rows, "notes": self.notes});
        fs::write(folder.join("report.json"), serde_json::to_vec_pretty(&all)?)?;
        Ok(())
    }
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
