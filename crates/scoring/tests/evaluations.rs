//! Snapshots of the whole evaluation of each sample: every change of a score, reason or quote shows in review.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use support::{all_samples, scorer};

#[test]
fn evaluations_of_samples_match_snapshots() {
    for conversation in all_samples() {
        let mut evaluation = scorer().evaluate(&conversation);
        // Replaced, because it changes with every model.
        evaluation.scorer.weights_sha256 = "(model)".to_owned();
        insta::assert_json_snapshot!(conversation.ticket_id.clone(), evaluation);
    }
}
