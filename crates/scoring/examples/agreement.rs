//! How well the scorer agrees with human raters: Spearman's rho on conversations that weights were not fitted on.
//!
//! `cargo run -p assay-scoring --example agreement -- FOLDER`, where FOLDER holds `NAME.jsonl.gz` (assess bodies)
//! and `NAME.labels.jsonl.gz` (labels by `ticket_id`, with their `split`).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use assay_contracts::conversation::Conversation;
use assay_scoring::Scorer;
use serde_json::Value;

/// Data set, label, factor and offset that bring the label to 1–5, dimension.
const MEASURES: [(&str, &str, f64, f64, Measured); 6] = [
    ("stc3_en", "A", 1.0, 3.0, Measured::ResolutionAccuracy),
    ("stc3_en", "E", 1.0, 3.0, Measured::InteractionEffort),
    ("stc3_zh", "A", 1.0, 3.0, Measured::ResolutionAccuracy),
    ("stc3_zh", "E", 1.0, 3.0, Measured::InteractionEffort),
    ("reuse_sgd", "goal3", 2.0, 1.0, Measured::ResolutionAccuracy),
    ("reuse_mwoz", "goal3", 2.0, 1.0, Measured::ResolutionAccuracy),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    ResolutionAccuracy,
    InteractionEffort,
}

fn main() -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    let folder = std::env::args().nth(1).context("name the folder of bodies and labels")?;
    let folder = Path::new(&folder);
    if !folder.is_dir() {
        writeln!(output, "skipped: {} is not there", folder.display())?;
        return Ok(());
    }
    let scorer = Scorer::builtin()?;
    writeln!(output, "{:<12} {:<20} {:>5} {:>7} {:>6}", "data", "dimension", "n", "rho", "mae")?;
    for (name, label, factor, offset, measured) in MEASURES {
        let pairs = pairs(&scorer, folder, name, label, measured)?;
        let (labels, scores): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|(label, score)| (label * factor + offset, *score)).unzip();
        let error: f64 = labels.iter().zip(&scores).map(|(label, score)| (label - score).abs()).sum();
        let (count, rho) = (labels.len(), spearman(&labels, &scores));
        let dimension = format!("{measured:?}");
        writeln!(output, "{name:<12} {dimension:<20} {count:>5} {rho:>7.3} {:>6.2}", error / count as f64)?;
    }
    Ok(())
}

/// Label and score of every conversation that was kept back from fitting and has AXIS.
fn pairs(
    scorer: &Scorer,
    folder: &Path,
    name: &str,
    label: &str,
    measured: Measured,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let mut labels = BTreeMap::new();
    for line in lines(&folder.join(format!("{name}.labels.jsonl.gz")))? {
        let value: Value = serde_json::from_str(&line)?;
        if let (Some(id), Some(label), Some("dev")) =
            (value["ticket_id"].as_str(), value[label].as_f64(), value["split"].as_str())
        {
            labels.insert(id.to_owned(), label);
        }
    }
    let mut pairs = Vec::new();
    for line in lines(&folder.join(format!("{name}.jsonl.gz")))? {
        let conversation =
            Conversation::parse(line.as_bytes()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let Some(label) = labels.get(&conversation.ticket_id) else {
            continue;
        };
        if let Some(axis) = scorer.evaluate(&conversation).axis {
            let dimensions = axis.dimensions;
            let score = match measured {
                Measured::ResolutionAccuracy => dimensions.resolution_accuracy.score,
                Measured::InteractionEffort => dimensions.interaction_effort.score,
            };
            pairs.push((*label, score.value()));
        }
    }
    Ok(pairs)
}

fn lines(path: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("gzip").arg("-dc").arg(path).output().context("gzip cannot be started")?;
    if !output.status.success() {
        bail!("{} cannot be unpacked: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Spearman's rank correlation: Pearson's of the ranks, ties sharing the mean of theirs.
fn spearman(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (ranks(one), ranks(other));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_one, mean_other) = (mean(&one), mean(&other));
    let (mut common, mut square_one, mut square_other) = (0.0, 0.0, 0.0);
    for (a, b) in one.iter().zip(&other) {
        common += (a - mean_one) * (b - mean_other);
        square_one += (a - mean_one).powi(2);
        square_other += (b - mean_other).powi(2);
    }
    common / (square_one * square_other).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let below = values.iter().filter(|value| **value < values[group[0]]).count();
        for index in group {
            ranks[*index] = below as f64 + (group.len() + 1) as f64 / 2.0;
        }
    }
    ranks
}
