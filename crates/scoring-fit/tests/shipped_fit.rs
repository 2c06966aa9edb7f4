//! Making the shipped weights: from data sets written for the test, and from the real ones where they are.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says why it is skipped"
)]

mod support;

use std::path::{Path, PathBuf};

use assay_scoring::Scorer;
use assay_scoring::weights_file::{Mixture, WeightsFile};
use assay_scoring_fit::fit_shipped;
use serde_json::{Value, json};
use support::{bodies, customer_messages, ending, write_lines};

/// The three sets of the table of rules, with labels by a simple rule.
fn write_sets(folder: &Path) {
    let bodies = bodies(60);
    for name in ["stc3_en", "reuse_sgd", "reuse_mwoz"] {
        write_lines(&folder.join(format!("{name}.jsonl")), &bodies);
        let labels: Vec<Value> = bodies
            .iter()
            .enumerate()
            .map(|(index, body)| {
                let goal = [2, 0, 0, 1, 1, 0][ending(index)];
                let split = if index % 4 == 3 { "dev" } else { "train" };
                let effort = 2.0 - 0.4 * customer_messages(body) as f64;
                json!({"ticket_id": body["ticket_id"], "split": split, "goal3": goal,
                    "A": f64::from(goal) - 1.0, "E": effort.max(-2.0)})
            })
            .collect();
        write_lines(&folder.join(format!("{name}.labels.jsonl")), &labels);
    }
}

#[test]
fn the_same_data_give_the_same_bytes_and_the_engine_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    write_sets(folder.path());
    let once = fit_shipped(folder.path()).unwrap();
    assert_eq!(once, fit_shipped(folder.path()).unwrap());
    Scorer::fitted(&once.text).unwrap();
    let file: WeightsFile = serde_json::from_str(&once.text).unwrap();
    let Mixture { brief, detailed } = &file.dimensions.interaction_effort;
    for model in [brief, detailed] {
        assert!(!model.trees.is_empty() && model.weights.iter().any(|weight| *weight > 0.0));
    }
    assert_ne!(brief, detailed);
    let data: Vec<(&str, usize, usize)> =
        file.manifest.data.iter().map(|entry| (entry.name.as_str(), entry.fitted, entry.kept_back)).collect();
    assert_eq!(data, [("stc3_en", 45, 15), ("reuse_sgd", 45, 15), ("reuse_mwoz", 45, 15)]);
    assert!(file.manifest.figures["stc3_en, resolution accuracy: rho kept back"] > 0.5, "{}", once.report);
    for heading in ["Kept back from fitting", "Within the set", "Set left out", "Was it resolved"] {
        assert!(once.report.contains(heading), "{}", once.report);
    }
}

#[test]
fn a_set_that_is_missing_or_has_no_split_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = fit_shipped(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("stc3_en.jsonl"), "{refused}");
    write_sets(folder.path());
    let path = folder.path().join("reuse_sgd.labels.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"dev\"", "\"train\"")).unwrap();
    let refused = fit_shipped(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("reuse_sgd") && refused.contains("split"), "{refused}");
    std::fs::write(&path, text.replacen("\"goal3\"", "\"goal\"", 1)).unwrap();
    let refused = fit_shipped(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("reuse_sgd.labels.jsonl, line 1: `goal3` is missing"), "{refused}");
}

#[test]
fn the_committed_weights_name_the_data_that_they_were_fitted_on() {
    let file: WeightsFile = serde_json::from_str(assay_scoring::BUILTIN_WEIGHTS).unwrap();
    let Some(folder) = data_folder() else {
        return;
    };
    for entry in &file.manifest.data {
        let labels = folder.join(format!("{}.labels.jsonl.gz", entry.name));
        assert!(labels.exists() && entry.fitted > entry.kept_back, "{entry:?}");
    }
    assert_eq!(file.manifest.data.len(), 3);
}

/// The folder of public data sets beside the workspace, where there is one.
fn data_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/dev");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} is not there", folder.display());
    None
}
