//! Golden conversations: snapshots of their evaluations, and agreement with human expectations.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

#[path = "../../../tests/measurement_data.rs"]
mod measurement_data;
mod support;

use assay_contracts::evaluation::{Dimension, Evaluation};
use measurement_data::measurement_data;
use sha2::{Digest, Sha256};
use support::expectations::check;
use support::{golden, read, scorer};

/// Maximum evaluations that violate an expectation, as measured. May only be lowered.
const MAX_VIOLATIONS: usize = 42;

/// Probes that the scorer fails. The list is exact: a passing probe must be removed; one is added with another model file only (ADR 25).
const FAILING_PROBES: &[&str] = &[
    "probe-ai-message-empty-emoji",
    "probe-asked-for-human-then-solved-by-ai",
    "probe-correct-refusal-accepted",
    "probe-correct-refusal-not-accepted",
    "probe-human-offered-refused",
    "probe-human-work-in-notes-then-thanks",
    "probe-no-after-anything-else-action",
    "probe-no-to-still-having-trouble",
    "probe-planned-handoff-collect-then-human",
    "probe-polite-goodbye-without-solution",
    "probe-promised-callback-never-came",
    "probe-reopened-then-fixed",
    "probe-will-try-and-come-back",
    "probe-yes-to-still-having-trouble",
];

/// The same for the probes of the measurement data.
const FAILING_PROBES_OF_MEASUREMENT_DATA: &[&str] =
    &["adv-whitespace-ai", "adv-spanish", "adv-two-issues-one-done", "adv-handoff-repeat"];

/// Threads that evaluate at the same time.
const THREADS: usize = 8;

/// Minimum for enough variety.
const MIN_CONVERSATIONS: usize = 200;

/// One test for all snapshots: separate tests run in separate processes, and each would evaluate everything.
#[test]
fn evaluations_match_snapshots() {
    let evaluations = evaluations();
    assert!(evaluations.len() >= MIN_CONVERSATIONS);
    let joined_lines =
        |line: fn(&Evaluation) -> String| evaluations.iter().map(line).collect::<Vec<_>>().join("\n");
    assert_golden("scores", &joined_lines(score_line));
    assert_golden("explanations", &joined_lines(explanation));
    // The digests cover what the other two snapshots leave out: offsets, confidences, the timeline.
    assert_golden("digests", &joined_lines(digest_line));
}

#[test]
fn evaluations_are_deterministic_across_runs_and_threads() {
    let first = evaluations_as_json();
    assert_eq!(evaluations_as_json(), first, "a second run");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..THREADS).map(|_| scope.spawn(evaluations_as_json)).collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), first, "another thread");
        }
    });
}

#[test]
fn expectation_violations_stay_within_limit() {
    let outcome = check(scorer(), &golden("conversations.jsonl"), &golden("expected.jsonl"));
    for violation in &outcome.violations {
        eprintln!("{}: {}", violation.ticket_id, violation.description);
    }
    let violations = outcome.violations.len();
    eprintln!("{violations} violations in {}, {MAX_VIOLATIONS} are allowed", outcome.expected);
    assert!(violations <= MAX_VIOLATIONS, "{violations} violations, at most {MAX_VIOLATIONS} allowed");
}

#[test]
fn probes_fail_exactly_as_listed() {
    let outcome = check(scorer(), &golden("probes.jsonl"), &golden("probes.expect.jsonl"));
    outcome.assert_fails_as_listed(FAILING_PROBES);
}

#[test]
fn probes_fail_as_listed_on_measurement_data() {
    let Some(folder) = measurement_data("data") else {
        return;
    };
    let outcome = check(scorer(), &folder.join("probes.jsonl"), &folder.join("probes.expect.jsonl"));
    outcome.assert_fails_as_listed(FAILING_PROBES_OF_MEASUREMENT_DATA);
}

fn evaluations() -> Vec<Evaluation> {
    read(&golden("conversations.jsonl")).iter().map(|conversation| scorer().evaluate(conversation)).collect()
}

/// Every evaluation as JSON.
fn evaluations_as_json() -> Vec<String> {
    evaluations().iter().map(|evaluation| serde_json::to_string(evaluation).unwrap()).collect()
}

/// Compares with the snapshot file beside the conversations.
fn assert_golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Ticket and the beginning of the SHA-256 of its evaluation without the model's SHA-256: a new model with the same results
/// does not change it.
fn digest_line(evaluation: &Evaluation) -> String {
    let mut evaluation = evaluation.clone();
    evaluation.scorer.weights_sha256.clear();
    let digest = Sha256::digest(serde_json::to_vec(&evaluation).unwrap());
    let beginning = hex::encode(&digest[..8]);
    format!("{} {beginning}", evaluation.external_ticket_id)
}

/// Ticket, scores, verdict and charge on one line.
fn score_line(evaluation: &Evaluation) -> String {
    let scores = evaluation.axis.as_ref().map_or("no axis".to_owned(), |axis| {
        let dimensions = &axis.dimensions;
        let [accuracy, effort, smoothness] = [
            &dimensions.resolution_accuracy.score,
            &dimensions.interaction_effort.score,
            &dimensions.handoff_smoothness.score,
        ]
        .map(|score| score.value());
        format!("RA {accuracy:.1} IE {effort:.1} HS {smoothness:.1}")
    });
    let resolution = &evaluation.resolution;
    let charge = &evaluation.charge;
    let reasons: Vec<&str> = charge.reasons.iter().map(|reason| reason.as_str()).collect();
    format!(
        "{} | {scores} | {} by {} ({}) | handoff {} | {} {}",
        evaluation.external_ticket_id,
        resolution.status.as_str(),
        resolution.resolved_by.as_str(),
        resolution.basis.as_str(),
        evaluation.handoff.state.as_str(),
        charge.assessment.as_str(),
        reasons.join(" "),
    )
    .trim_end()
    .to_owned()
}

/// Every reason and signal with its quotes.
fn explanation(evaluation: &Evaluation) -> String {
    let mut text = format!("# {}\n", evaluation.external_ticket_id);
    if let Some(axis) = &evaluation.axis {
        let dimensions = &axis.dimensions;
        text += &dimension(evaluation, "RA", &dimensions.resolution_accuracy);
        text += &dimension(evaluation, "IE", &dimensions.interaction_effort);
        let smoothness = &dimensions.handoff_smoothness;
        text += &format!("HS {:.1}: {}\n", smoothness.score.value(), smoothness.reason);
    }
    let resolution = &evaluation.resolution;
    text += &format!(
        "{}: {}{}\n",
        resolution.status.as_str(),
        resolution.reason,
        quotes(evaluation, &resolution.evidence)
    );
    let flags: Vec<&str> = evaluation.flags.iter().map(|flag| flag.as_str()).collect();
    if !flags.is_empty() {
        text += &format!("flags: {}\n", flags.join(" "));
    }
    text
}

fn dimension(evaluation: &Evaluation, name: &str, dimension: &Dimension) -> String {
    let mut text = format!("{name} {:.1}: {}\n", dimension.score.value(), dimension.reason);
    for signal in &dimension.signals {
        text += &format!("  {} {:+.2}{}\n", signal.code, signal.effect, quotes(evaluation, &signal.evidence));
    }
    text
}

fn quotes(evaluation: &Evaluation, indices: &[usize]) -> String {
    indices
        .iter()
        .map(|index| {
            let evidence = &evaluation.evidence[*index];
            format!(" [{}: {:?}]", evidence.message_external_id, evidence.quote)
        })
        .collect()
}
