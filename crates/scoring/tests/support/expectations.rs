//! Human expectations of evaluations, as ranges, and their violations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use assay_contracts::evaluation::{
    AiInvolvement, ChargeAssessment, Evaluation, Flag, HandoffState, ResolutionStatus, ResolvedBy,
};
use assay_scoring::Scorer;
use serde::Deserialize;

/// One line of a file of expectations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    pub ticket_id: String,
    /// Reason of the expectation.
    pub why: String,
    pub expect: Expected,
}

/// Allowed values; an absent field allows everything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(non_snake_case, reason = "the names of the file")]
pub struct Expected {
    resolution: Option<Vec<ResolutionStatus>>,
    resolved_by: Option<Vec<ResolvedBy>>,
    charge: Option<Vec<ChargeAssessment>>,
    handoff_state: Option<Vec<HandoffState>>,
    /// Whether a human took over.
    escalated: Option<bool>,
    ai_involvement: Option<AiInvolvement>,
    RA_min: Option<f64>,
    RA_max: Option<f64>,
    IE_min: Option<f64>,
    IE_max: Option<f64>,
    HS_min: Option<f64>,
    HS_max: Option<f64>,
    HS_eq: Option<f64>,
    confidence_max: Option<f64>,
    flags: Option<Vec<Flag>>,
}

impl Expected {
    /// Violations, in words.
    pub fn violations(&self, evaluation: &Evaluation) -> Vec<String> {
        let dimensions = evaluation.axis.as_ref().map(|axis| &axis.dimensions);
        let accuracy = dimensions.map(|dimensions| dimensions.resolution_accuracy.score.value());
        let effort = dimensions.map(|dimensions| dimensions.interaction_effort.score.value());
        let smoothness = dimensions.map(|dimensions| dimensions.handoff_smoothness.score.value());
        let confidence = dimensions.map(|dimensions| dimensions.resolution_accuracy.confidence.value());
        let highest_confidence = confidence.unwrap_or(0.0).max(evaluation.resolution.confidence.value());
        let missing_flags = self.flags.iter().flatten().filter(|flag| !evaluation.flags.contains(flag));
        let handoff = evaluation.handoff.state;
        let mut violations: Vec<String> = [
            one_of("status", evaluation.resolution.status, self.resolution.as_deref()),
            one_of("by", evaluation.resolution.resolved_by, self.resolved_by.as_deref()),
            one_of("charge", evaluation.charge.assessment, self.charge.as_deref()),
            one_of("handoff", handoff, self.handoff_state.as_deref()),
            one_of("escalated", handoff == HandoffState::Completed, only(&self.escalated)),
            one_of("involvement", evaluation.ai_involvement, only(&self.ai_involvement)),
            within("RA", accuracy, self.RA_min, self.RA_max),
            within("IE", effort, self.IE_min, self.IE_max),
            within("HS", smoothness, self.HS_min, self.HS_max),
            within("HS", smoothness, self.HS_eq, self.HS_eq),
            within("confidence", Some(highest_confidence), None, self.confidence_max),
        ]
        .into_iter()
        .flatten()
        .collect();
        violations.extend(missing_flags.map(|flag| format!("{flag:?} is not flagged")));
        violations
    }
}

fn only<T>(allowed: &Option<T>) -> Option<&[T]> {
    allowed.as_ref().map(std::slice::from_ref)
}

fn one_of<T: PartialEq + std::fmt::Debug>(name: &str, value: T, allowed: Option<&[T]>) -> Option<String> {
    let allowed = allowed.filter(|allowed| !allowed.contains(&value))?;
    Some(format!("{name} {value:?}, not one of {allowed:?}"))
}

fn within(name: &str, value: Option<f64>, least: Option<f64>, most: Option<f64>) -> Option<String> {
    if least.is_none() && most.is_none() {
        return None;
    }
    let Some(value) = value else {
        return Some(format!("{name} is missing"));
    };
    let too_low = least.filter(|least| value < *least).map(|least| format!("{name} {value} below {least}"));
    let too_high = most.filter(|most| value > *most).map(|most| format!("{name} {value} above {most}"));
    too_low.or(too_high)
}

/// A conversation whose evaluation violates its expectation.
#[derive(Debug)]
pub struct Violation {
    pub ticket_id: String,
    /// The reason of the expectation and the violations.
    pub description: String,
}

/// Result of a file of expectations.
#[derive(Debug)]
pub struct Outcome {
    pub expected: usize,
    pub violations: Vec<Violation>,
}

impl Outcome {
    /// The list is exact: what passes must be taken off it.
    pub fn assert_fails_as_listed(&self, listed: &[&str]) {
        let failed: Vec<&str> =
            self.violations.iter().map(|violation| violation.ticket_id.as_str()).collect();
        let new: Vec<_> =
            self.violations.iter().filter(|found| !listed.contains(&found.ticket_id.as_str())).collect();
        let passing: Vec<_> = listed.iter().filter(|listed| !failed.contains(listed)).collect();
        assert!(new.is_empty(), "these fail: {new:#?}");
        assert!(passing.is_empty(), "these pass or do not exist, take them off the list: {passing:#?}");
    }
}

/// Evaluates every conversation of one file against the expectations of another.
///
/// Both must name the same tickets, each of them once.
pub fn check(scorer: &Scorer, conversations: &Path, expectations: &Path) -> Outcome {
    let conversations = super::read(conversations);
    let text = std::fs::read_to_string(expectations).unwrap();
    let expectations: Vec<Expectation> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let evaluations: BTreeMap<&str, Evaluation> = conversations
        .iter()
        .map(|conversation| (conversation.ticket_id.as_str(), scorer.evaluate(conversation)))
        .collect();
    let named: BTreeSet<&str> =
        expectations.iter().map(|expectation| expectation.ticket_id.as_str()).collect();
    assert!(evaluations.keys().eq(named.iter()), "conversations and expectations have different tickets");
    assert!(named.len() == conversations.len() && named.len() == expectations.len(), "duplicate ticket");
    let violations = expectations.iter().filter_map(|expectation| {
        let violations = expectation.expect.violations(&evaluations[expectation.ticket_id.as_str()]);
        let description = format!("{}: {}", expectation.why, violations.join("; "));
        (!violations.is_empty()).then(|| Violation { ticket_id: expectation.ticket_id.clone(), description })
    });
    Outcome { expected: expectations.len(), violations: violations.collect() }
}
