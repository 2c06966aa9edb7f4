//! Snapshots of the whole evaluation of each sample: every change of a score, reason or quote shows in review.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_scoring::Scorer;

fn assert_snapshots(file: &str) {
    let scorer = Scorer::builtin().unwrap();
    for conversation in support::samples(file) {
        let mut evaluation = scorer.evaluate(&conversation);
        // Replaced, because it changes with every model.
        evaluation.scorer.weights_sha256 = "(model)".to_owned();
        insta::assert_json_snapshot!(conversation.ticket_id.clone(), evaluation);
    }
}

#[test]
fn endings_match_snapshots() {
    assert_snapshots("endings.jsonl");
}

#[test]
fn handoffs_match_snapshots() {
    assert_snapshots("handoff.jsonl");
}

#[test]
fn traps_match_snapshots() {
    assert_snapshots("traps.jsonl");
}

#[test]
fn authors_match_snapshots() {
    assert_snapshots("authors.jsonl");
}
