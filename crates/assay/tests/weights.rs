//! `assay fit`, `assay evaluate`, `assay weights`, `assay benchmark` and `assay score --weights`, end to end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/measurement_data.rs"]
mod measurement_data;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use measurement_data::measurement_data;
use serde_json::{Value, json};

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

fn assay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a command prints that succeeds.
fn printed(arguments: &[&str]) -> String {
    let output = assay(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// 28 conversations: the scorer's samples, and each with one more customer message.
fn conversations(folder: &Path) -> (String, Vec<Value>) {
    let samples = Path::new(MANIFEST).join("../scoring/tests/samples");
    let mut bodies: Vec<Value> = Vec::new();
    for file in ["endings.jsonl", "traps.jsonl"] {
        let lines = fs::read_to_string(samples.join(file)).unwrap();
        bodies.extend(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    bodies.truncate(14);
    for index in 0..14 {
        let mut longer = bodies[index].clone();
        longer["ticket_id"] = json!(format!("longer-{index}"));
        let messages = longer["messages"].as_array_mut().unwrap();
        let timestamp = messages.last().unwrap()["timestamp"].as_u64().unwrap() + 60_000;
        messages.push(
            json!({"author": {"type": "contact", "external_id": "c"}, "content": "No, still not working.",
            "external_id": "one-more", "timestamp": timestamp, "kind": "message"}),
        );
        bodies.push(longer);
    }
    let path = folder.join("conversations.jsonl");
    let lines: Vec<String> = bodies.iter().map(Value::to_string).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    (path.to_str().unwrap().to_owned(), bodies)
}

/// Labels of a reviewer stricter than the scorer, for the first `count` conversations.
fn labels(folder: &Path, bodies: &[Value], count: usize) -> String {
    let label = |body: &Value| {
        let long = body["ticket_id"].as_str().unwrap().starts_with("longer");
        let points = if long { 1.2 } else { 3.1 - 0.1 * body["messages"].as_array().unwrap().len() as f64 };
        json!({"ticket_id": body["ticket_id"], "interaction_effort": points}).to_string()
    };
    let path = folder.join("labels.jsonl");
    fs::write(&path, bodies.iter().take(count).map(label).collect::<Vec<_>>().join("\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn weights_are_fitted_measured_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let (conversations, bodies) = conversations(folder.path());
    let labels = labels(folder.path(), &bodies, bodies.len());
    let weights = folder.path().join("weights.json");
    let weights = weights.to_str().unwrap();

    let report = printed(&["fit", "--conversations", &conversations, "--labels", &labels, "--out", weights]);
    assert!(report.contains("28 labelled conversations") && report.contains("written: "), "{report}");

    let shown = printed(&["weights", weights]);
    assert!(shown.starts_with("fitted on 28 conversations, for the model "), "{shown}");
    assert!(
        shown.lines().any(|line| line.starts_with("resolution accuracy") && line.ends_with("as shipped"))
    );

    let measure = |extra: &[&str]| {
        let files = ["evaluate", "--conversations", &conversations, "--labels", &labels];
        printed(&[&files[..], extra].concat())
    };
    let (shipped, adapted) = (measure(&[]), measure(&["--weights", weights]));
    assert!(shipped.contains("interaction effort") && shipped != adapted, "{shipped}\n{adapted}");

    let hash = |extra: &[&str]| {
        let scored = printed(&[&["score", &conversations][..], extra].concat());
        let first: Value = serde_json::from_str(scored.lines().next().unwrap()).unwrap();
        first["scorer"]["weights_sha256"].as_str().unwrap().to_owned()
    };
    let adapted_hash = hash(&["--weights", weights]);
    assert_ne!(adapted_hash, hash(&[]));
    assert!(adapted.contains(&adapted_hash), "evaluations and reports name the same weights: {adapted}");
}

#[test]
fn too_few_labels_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (conversations, bodies) = conversations(folder.path());
    let labels = labels(folder.path(), &bodies, 12);
    let weights = folder.path().join("weights.json");
    let out = weights.to_str().unwrap();
    let output = assay(&["fit", "--conversations", &conversations, "--labels", &labels, "--out", out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("12 labelled conversations are too few, 25 are needed"));
    assert!(!weights.exists());
}

#[test]
fn incompatible_weights_are_refused_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().join("weights.json");
    fs::write(&weights, "{\"format\": 1}").unwrap();
    let weights = weights.to_str().unwrap();
    let (conversations, _) = conversations(folder.path());
    let output = assay(&["score", &conversations, "--weights", weights]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains(weights) && error.contains("format 1") && error.contains("assay fit"), "{error}");
}

/// Copies one writer of the corpus into a folder with the layout of the corpus.
fn copy_one_writer(folder: &Path) {
    let corpus = Path::new(MANIFEST).join("../../corpus");
    for file in ["conversations/e1.txt", "ratings/e1.r1.txt", "ratings/e1.r2.txt"] {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::copy(corpus.join(file), folder.join(file)).unwrap();
    }
    fs::write(folder.join("writers.tsv"), "writer\tpart\twording\tlanguage\ne1\tdev\teveryday\ten\n")
        .unwrap();
}

#[test]
fn benchmark_of_the_corpus_prints_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    copy_one_writer(folder.path());
    let corpus = folder.path().to_str().unwrap();
    let report = printed(&["benchmark", corpus, "--part", "dev"]);
    assert!(report.starts_with("dev: "), "{report}");
    let model = Path::new(MANIFEST).join("../scoring/model/reader.bin");
    let report =
        printed(&["benchmark", corpus, "--part", "dev", "--model", model.to_str().unwrap(), "--json"]);
    let found: Value = serde_json::from_str(&report).unwrap();
    let sets = found["sets"].as_array().unwrap();
    let all = sets.iter().find(|set| set["name"] == "all").unwrap();
    assert_eq!(all["conversations"], found["conversations"]);
    let rho = &all["scorer"]["resolution_accuracy"];
    let [low, value, high] = ["low", "value", "high"].map(|name| rho[name].as_f64().unwrap());
    assert!(0.3 < low && low < value && value < high && high < 1.0, "{rho}");
}

#[test]
fn unknown_benchmark_part_is_wrong_usage() {
    let output = assay(&["benchmark", "corpus", "--part", "all"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it must be `train`, `dev` or `test`"), "{}", text(&output.stderr));
}

#[test]
fn public_labels_are_compared_on_measurement_data() {
    let Some(data) = measurement_data("data/dev") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.jsonl");
    let output =
        Command::new("gzip").arg("-dc").arg(data.join("reuse_sgd.labels.jsonl.gz")).output().unwrap();
    let lines = text(&output.stdout);
    let public_labels = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let relabelled = public_labels.filter(|label| label["split"] == "dev").map(|label| {
        // 0, 1 or 2 becomes 1, 3 or 5 points.
        let points = 1.0 + 2.0 * label["goal3"].as_f64().unwrap();
        json!({"ticket_id": label["ticket_id"], "resolution_accuracy": points}).to_string()
    });
    fs::write(&labels, relabelled.collect::<Vec<_>>().join("\n")).unwrap();
    let conversations = data.join("reuse_sgd.jsonl.gz");
    let (conversations, labels) = (conversations.to_str().unwrap(), labels.to_str().unwrap());
    let report = printed(&["evaluate", "--conversations", conversations, "--labels", labels]);
    assert!(report.contains("100 labelled conversations"), "{report}");
    let line = report.lines().find(|line| line.starts_with("resolution accuracy ")).unwrap();
    let rho: f64 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    // The agreement itself is tested in crates/scoring-fit/tests/goals.rs.
    assert!(rho.abs() <= 1.0, "{report}");
}
