//! One table: what was measured, its limit in the same run, the ratio, and what it should be.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

/// What a figure must reach.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Ours divided by the limit is this or more.
    Ratio(f64),
    /// Ours is this or less.
    AtMost(f64),
    /// Nobody has asked for a certain figure.
    None,
}

/// A measured figure beside its limit; one value for each round.
pub struct Row {
    pub section: &'static str,
    pub what: String,
    pub unit: &'static str,
    pub ours: Vec<f64>,
    /// What the limit is, and what it was in each round; without values the goal is the limit.
    pub limit: (String, Vec<f64>),
    pub goal: Goal,
}

impl Row {
    /// Beside a limit that was measured in the same rounds.
    pub fn beside(
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

    /// Beside nothing but what it must reach.
    pub fn alone(
        section: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        goal: Goal,
    ) -> Self {
        Self::beside(section, what, unit, ours, ("goal", &[]), goal)
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
    /// Whether the figures are good enough to say that a goal is reached, or is not.
    judges: bool,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// Without judgement, when figures are too short to tell anything.
    pub fn new(judges: bool) -> Self {
        Self { judges, rows: Vec::new(), notes: Vec::new() }
    }

    pub fn add(&mut self, row: Row) {
        println!("{}", row.line(self.judges));
        self.rows.push(row);
    }

    /// Something that belongs to the figures: who used the processors, for example.
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

/// The middle value.
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
