//! The result table: figure, baseline in the same run, ratio and goal.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

/// Goal of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Minimum ratio of the figure to the baseline.
    Ratio(f64),
    /// Maximum value.
    AtMost(f64),
    /// No goal.
    None,
}

/// A measured figure and its baseline; one value per round.
struct Row {
    section: &'static str,
    what: String,
    unit: &'static str,
    ours: Vec<f64>,
    /// Name of what the figure is compared with.
    baseline: String,
    /// Its values; without any, only the goal counts.
    baseline_rounds: Vec<f64>,
    goal: Goal,
}

impl Row {
    /// Median of the ratios of the rounds: neighbours in time are compared with each other.
    fn ratio(&self) -> Option<f64> {
        let pairs = self.ours.iter().zip(&self.baseline_rounds);
        let ratios: Vec<f64> = pairs.map(|(ours, baseline)| ours / baseline).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    fn reached(&self) -> Option<bool> {
        match self.goal {
            Goal::Ratio(goal) => Some(self.ratio()? >= goal),
            Goal::AtMost(goal) => Some(median(&self.ours) <= goal),
            Goal::None => None,
        }
    }

    fn line(&self, checks_goals: bool) -> String {
        let baseline = if self.baseline_rounds.is_empty() {
            self.baseline.clone()
        } else {
            format!("{} = {}", self.baseline, number(median(&self.baseline_rounds)))
        };
        let goal = match self.goal {
            Goal::Ratio(goal) => format!("ratio ≥ {goal}"),
            Goal::AtMost(goal) => format!("≤ {goal} {}", self.unit),
            Goal::None => String::new(),
        };
        let ratio = self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let reached = match self.reached().filter(|_| checks_goals) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        format!(
            "| {} | {} | {} {} | {baseline} | {ratio} | {goal} | {reached} |",
            self.section,
            self.what,
            number(median(&self.ours)),
            self.unit
        )
    }

    fn json(&self, checks_goals: bool) -> Value {
        json!({
            "section": self.section, "what": self.what, "unit": self.unit, "rounds": self.ours,
            "median": median(&self.ours), "limit": self.baseline, "limit_rounds": self.baseline_rounds,
            "ratio": self.ratio(), "reached": self.reached().filter(|_| checks_goals),
        })
    }
}

/// Everything that was measured.
pub struct Report {
    /// Whether the runs were long enough to compare figures with goals.
    checks_goals: bool,
    /// The part that figures are added to.
    section: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// With `checks_goals` false, figures are not compared with goals.
    pub fn new(checks_goals: bool) -> Self {
        Self { checks_goals, section: "", rows: Vec::new(), notes: Vec::new() }
    }

    /// The figures that follow belong to this part.
    pub fn begin(&mut self, section: &'static str) {
        self.section = section;
    }

    /// Adds a figure with a baseline measured in the same rounds; one value per round.
    pub fn compare(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        (baseline, values): (&str, &[f64]),
        goal: Goal,
    ) {
        let (what, baseline) = (what.into(), baseline.to_owned());
        let (ours, baseline_rounds) = (ours.to_vec(), values.to_vec());
        let row = Row { section: self.section, what, unit, ours, baseline, baseline_rounds, goal };
        println!("{}", row.line(self.checks_goals));
        self.rows.push(row);
    }

    /// Adds a figure with a goal only.
    pub fn add(&mut self, what: impl Into<String>, unit: &'static str, ours: &[f64], goal: Goal) {
        self.compare(what, unit, ours, ("goal", &[]), goal);
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
            "| | what | measured | baseline in the same run | ratio | goal | reached |\n|---|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let _ = writeln!(text, "{}", row.line(self.checks_goals));
        }
        text.push('\n');
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        println!("\n{text}");
        fs::write(folder.join("report.md"), text)?;
        let rows: Vec<Value> = self.rows.iter().map(|row| row.json(self.checks_goals)).collect();
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
