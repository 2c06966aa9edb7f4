//! Every sample with its whole evaluation: a change of any score, reason or quote shows in review.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_scoring::Scorer;

fn assert_file(file: &str) {
    let scorer = Scorer::builtin().unwrap();
    for conversation in support::samples(file) {
        let mut evaluation = scorer.evaluate(&conversation);
        // Changes with every model; the scores themselves are what a review must see.
        evaluation.scorer.weights_sha256 = "(model)".to_owned();
        insta::assert_json_snapshot!(conversation.ticket_id.clone(), evaluation);
    }
}

#[test]
fn endings_are_evaluated_as_recorded() {
    assert_file("endings.jsonl");
}

#[test]
fn handoffs_are_evaluated_as_recorded() {
    assert_file("handoff.jsonl");
}

#[test]
fn traps_are_evaluated_as_recorded() {
    assert_file("traps.jsonl");
}

#[test]
fn authors_are_evaluated_as_recorded() {
    assert_file("authors.jsonl");
}
