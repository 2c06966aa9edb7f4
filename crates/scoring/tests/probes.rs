//! Hand-written hard cases from the folder of measurement data; skipped if it is absent.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../../tests/measurement_data.rs"]
mod measurement_data;
mod support;

use std::collections::BTreeMap;

use assay_contracts::evaluation::{AiInvolvement, Evaluation, HandoffState, ResolutionStatus};
use assay_scoring::Scorer;
use measurement_data::measurement_data;
use serde::Deserialize;

#[derive(Deserialize)]
struct Expectation {
    ticket_id: String,
    why: String,
    expect: Expected,
}

#[derive(Deserialize)]
#[allow(non_snake_case, reason = "the names of the file")]
struct Expected {
    resolution: Option<Vec<ResolutionStatus>>,
    RA_min: Option<f64>,
    RA_max: Option<f64>,
    IE_min: Option<f64>,
    IE_max: Option<f64>,
    HS_max: Option<f64>,
    HS_eq: Option<f64>,
    escalated: Option<bool>,
    ai_involvement: Option<AiInvolvement>,
    confidence_max: Option<f64>,
}

/// Names of the violated expectations.
fn violations(evaluation: &Evaluation, expected: &Expected) -> Vec<String> {
    let dimensions = evaluation.axis.as_ref().map(|axis| &axis.dimensions);
    let accuracy = dimensions.map(|dimensions| dimensions.resolution_accuracy.score.value());
    let effort = dimensions.map(|dimensions| dimensions.interaction_effort.score.value());
    let smoothness = dimensions.map(|dimensions| dimensions.handoff_smoothness.score.value());
    let confidence = dimensions.map(|dimensions| dimensions.resolution_accuracy.confidence.value());
    let highest_confidence = confidence.unwrap_or(0.0).max(evaluation.resolution.confidence.value());
    let at_least = |limit: Option<f64>, value: Option<f64>| limit.is_none_or(|limit| value >= Some(limit));
    let at_most = |limit: Option<f64>, value: Option<f64>| {
        limit.is_none_or(|limit| value.is_some_and(|value| value <= limit))
    };
    let escalated = evaluation.handoff.state == HandoffState::Completed;
    let checks = [
        (
            "resolution",
            expected
                .resolution
                .as_ref()
                .is_none_or(|allowed| allowed.contains(&evaluation.resolution.status)),
        ),
        ("RA_min", at_least(expected.RA_min, accuracy)),
        ("RA_max", at_most(expected.RA_max, accuracy)),
        ("IE_min", at_least(expected.IE_min, effort)),
        ("IE_max", at_most(expected.IE_max, effort)),
        ("HS_max", at_most(expected.HS_max, smoothness)),
        ("HS_eq", expected.HS_eq.is_none_or(|value| smoothness == Some(value))),
        ("escalated", expected.escalated.is_none_or(|value| value == escalated)),
        ("ai_involvement", expected.ai_involvement.is_none_or(|value| value == evaluation.ai_involvement)),
        ("confidence_max", at_most(expected.confidence_max, Some(highest_confidence))),
    ];
    checks.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name.to_owned()).collect()
}

/// Probes that the scorer fails. The list is exact: a passing probe must be removed, none may be added.
const FAILING_PROBES: [&str; 3] = ["adv-whitespace-ai", "adv-spanish", "adv-two-issues-one-done"];

#[test]
fn probes_fail_as_listed_on_measurement_data() {
    let Some(folder) = measurement_data("data") else {
        return;
    };
    let scorer = Scorer::builtin().unwrap();
    let evaluations: BTreeMap<String, Evaluation> = support::read(&folder.join("probes.jsonl"))
        .iter()
        .map(|probe| (probe.ticket_id.clone(), scorer.evaluate(probe)))
        .collect();
    let expectations = std::fs::read_to_string(folder.join("probes.expect.jsonl")).unwrap();
    let mut unexpected = Vec::new();
    for line in expectations.lines() {
        let expectation: Expectation = serde_json::from_str(line).unwrap();
        let violations = violations(&evaluations[&expectation.ticket_id], &expectation.expect);
        let is_listed = FAILING_PROBES.contains(&expectation.ticket_id.as_str());
        let fails = !violations.is_empty();
        if fails != is_listed {
            unexpected.push(format!("{} ({}): {violations:?}", expectation.ticket_id, expectation.why));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}
