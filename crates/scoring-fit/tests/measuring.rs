//! Measuring a scorer on labels, and errors of invalid files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write;

use assay_contracts::conversation::Conversation;
use assay_scoring::Scorer;
use assay_scoring_fit::{FitError, ReviewedConversations, evaluate};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use support::{bodies, files, reviewed, write_lines};

#[test]
fn labels_equal_to_scores_agree_fully() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = bodies(12);
    let scorer = Scorer::builtin().unwrap();
    let label = |body: &Value| {
        let evaluation = scorer.evaluate(&Conversation::parse(body.to_string().as_bytes()).unwrap());
        let score = evaluation.axis.unwrap().dimensions.resolution_accuracy.score;
        json!({"ticket_id": body["ticket_id"], "resolution_accuracy": score, "resolution": evaluation.resolution.status})
    };
    let labels: Vec<Value> = bodies.iter().map(label).collect();
    let report = evaluate(&scorer, &reviewed(folder.path(), &bodies, &labels)).unwrap();
    let line = report.lines().find(|line| line.starts_with("resolution accuracy ")).unwrap();
    // Number, rho, both ends of its interval, mean error, kappa.
    let cells: Vec<&str> = line.split_whitespace().skip(2).collect();
    assert_eq!((cells[0], cells[1], cells[4], cells[5]), ("12", "1.000", "0.00", "1.00"), "{report}");
    assert!(report.contains("resolution by the audit: accuracy 1.000"), "{report}");
    assert!(!report.contains("interaction effort"), "nobody labelled it: {report}");
}

#[test]
fn gzip_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = bodies(5);
    let labels: Vec<Value> =
        bodies.iter().map(|body| json!({"ticket_id": body["ticket_id"], "interaction_effort": 4})).collect();
    let plain = reviewed(folder.path(), &bodies, &labels);
    let (conversations, labelled) = files(folder.path());
    let compressed = [&conversations, &labelled].map(|path| {
        let target = path.with_extension("jsonl.gz");
        let mut encoder = GzEncoder::new(std::fs::File::create(&target).unwrap(), Compression::fast());
        encoder.write_all(&std::fs::read(path).unwrap()).unwrap();
        encoder.finish().unwrap();
        target
    });
    let decompressed = ReviewedConversations::read(&compressed[0], &compressed[1]).unwrap();
    let scorer = Scorer::builtin().unwrap();
    assert_eq!(evaluate(&scorer, &plain).unwrap(), evaluate(&scorer, &decompressed).unwrap());
}

#[test]
fn invalid_line_is_reported_with_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let (conversations, labelled) = files(folder.path());
    let assert_refused = |reason: &str| {
        let refused = ReviewedConversations::read(&conversations, &labelled).unwrap_err().to_string();
        assert!(refused.contains(reason), "{reason}: {refused}");
        refused
    };
    let label = |id: &str, points: u32| json!({"ticket_id": id, "resolution_accuracy": points});
    let mut broken = bodies(3);
    write_lines(&conversations, &broken);
    write_lines(&labelled, &[label("a", 3), label("b", 7)]);
    assert_refused("labels.jsonl, line 2: resolution_accuracy is 7");
    write_lines(&labelled, &[label("a", 3), label("a", 3)]);
    assert_refused("line 2: ticket_id `a` was labelled before");
    write_lines(&labelled, &[label("a", 3)]);
    broken[2]["messages"][0]["content"] = json!(7);
    write_lines(&conversations, &broken);
    assert!(assert_refused("conversations.jsonl, line 3: ").contains("content"));
    std::fs::remove_file(&conversations).unwrap();
    assert!(assert_refused("cannot read").contains("conversations.jsonl"));
}

#[test]
fn unmatched_labels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let labels = [json!({"ticket_id": "elsewhere", "resolution_accuracy": 3})];
    let refused = evaluate(&Scorer::builtin().unwrap(), &reviewed(folder.path(), &bodies(4), &labels));
    let refused = refused.unwrap_err();
    assert!(matches!(refused, FitError::NothingToMeasure { unmatched: 1 }), "{refused}");
}
