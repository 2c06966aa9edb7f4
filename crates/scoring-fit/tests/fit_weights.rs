//! Calibration of the shipped scores to reviewers with their own standards.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Axis;
use assay_scoring::{LinearModel, Scorer, Weights};
use assay_scoring_fit::{
    Change, Dimension, FitError, FittedWeights, ReviewedConversations, WorseWeights, fit_weights,
};
use serde_json::{Value, json};
use support::{bodies, customer_messages, reviewed};

/// A reviewer whose interaction effort depends only on the number of customer messages.
fn impatient_labels(bodies: &[Value]) -> Vec<Value> {
    let label = |body: &Value| {
        let points = 5.2 - 0.45 * customer_messages(body) as f64;
        json!({"ticket_id": body["ticket_id"], "interaction_effort": points.clamp(1.0, 5.0)})
    };
    bodies.iter().map(label).collect()
}

fn change(fitted: &FittedWeights, dimension: Dimension) -> Change {
    *fitted.changes.iter().find(|change| change.dimension == dimension).unwrap()
}

fn fit(bodies: &[Value], labels: &[Value], worse: WorseWeights) -> Result<FittedWeights, FitError> {
    let folder = tempfile::tempdir().unwrap();
    fit_weights(&reviewed(folder.path(), bodies, labels), worse)
}

fn weights(fitted: &FittedWeights) -> Weights {
    Weights::parse(&fitted.text, Scorer::builtin().unwrap().reader_sha256()).unwrap()
}

fn axis(scorer: &Scorer, body: &Value) -> Axis {
    let conversation = Conversation::parse(body.to_string().as_bytes()).unwrap();
    scorer.evaluate(&conversation).axis.unwrap()
}

#[test]
fn sixty_labels_improve_cross_validated_agreement() {
    let bodies = bodies(60);
    let fitted = fit(&bodies, &impatient_labels(&bodies), WorseWeights::Refuse).unwrap();
    let Change { shipped, adapted, .. } = change(&fitted, Dimension::InteractionEffort);
    assert!(adapted.error < shipped.error - 0.1, "{}", fitted.report);
    assert!(adapted.kappa > shipped.kappa + 0.05, "{}", fitted.report);
    assert!(fitted.report.contains("resolution accuracy stays as shipped: it has too few labels"));
}

#[test]
fn effort_labels_that_follow_accuracy_improve_rho() {
    let bodies = bodies(60);
    let scorer = Scorer::builtin().unwrap();
    let label = |body: &Value| {
        let score = axis(&scorer, body).dimensions.resolution_accuracy.score;
        json!({"ticket_id": body["ticket_id"], "interaction_effort": score})
    };
    let labels: Vec<Value> = bodies.iter().map(label).collect();
    let fitted = fit(&bodies, &labels, WorseWeights::Refuse).unwrap();
    let Change { shipped, adapted, .. } = change(&fitted, Dimension::InteractionEffort);
    assert!(adapted.rho > shipped.rho + 0.05 && adapted.error < shipped.error, "{}", fitted.report);
}

#[test]
fn adapted_weights_change_only_labelled_scores() {
    let bodies = bodies(60);
    let fitted = fit(&bodies, &impatient_labels(&bodies), WorseWeights::Refuse).unwrap();
    let adapted = weights(&fitted);
    assert_eq!(
        (adapted.resolution_accuracy, adapted.handoff_smoothness),
        (LinearModel::identity(0), LinearModel::identity(2))
    );
    assert_ne!(adapted.interaction_effort, LinearModel::identity(1));
    assert_eq!(adapted.conversations, 60);
    let shipped = Scorer::builtin().unwrap();
    let adapted = shipped.clone().with_weights(&fitted.text).unwrap();
    let scores = |scorer: &Scorer, body: &Value| {
        let dimensions = axis(scorer, body).dimensions;
        let kept = (dimensions.resolution_accuracy.score, dimensions.handoff_smoothness.score);
        (kept, dimensions.interaction_effort.score)
    };
    let mut moved = 0;
    for body in &bodies {
        let (before, after) = (scores(&shipped, body), scores(&adapted, body));
        assert_eq!(before.0, after.0);
        moved += usize::from(before.1 != after.1);
    }
    assert!(moved > 30, "{moved}");
}

#[test]
fn stricter_handoff_labels_change_only_handoff_score() {
    let bodies = bodies(40);
    let scorer = Scorer::builtin().unwrap();
    let label = |body: &Value| {
        let score = axis(&scorer, body).dimensions.handoff_smoothness.score.value();
        json!({"ticket_id": body["ticket_id"], "handoff_smoothness": (score - 1.0).max(1.0)})
    };
    let labels: Vec<Value> = bodies.iter().map(label).collect();
    let adapted = weights(&fit(&bodies, &labels, WorseWeights::Accept).unwrap());
    assert_ne!(adapted.handoff_smoothness, LinearModel::identity(2));
    assert_eq!(
        (adapted.resolution_accuracy, adapted.interaction_effort),
        (LinearModel::identity(0), LinearModel::identity(1))
    );
}

#[test]
fn resolution_labels_stand_in_for_accuracy() {
    let bodies = bodies(40);
    let label = |(index, body): (usize, &Value)| {
        let resolution = ["resolved", "not_resolved", "partial"][index % 3];
        json!({"ticket_id": body["ticket_id"], "resolution": resolution})
    };
    let labels: Vec<Value> = bodies.iter().enumerate().map(label).collect();
    let fitted = fit(&bodies, &labels, WorseWeights::Accept).unwrap();
    assert_ne!(weights(&fitted).resolution_accuracy, LinearModel::identity(0));
    assert!(fitted.report.contains("resolution by the audit: accuracy"), "{}", fitted.report);
}

#[test]
fn fit_is_deterministic() {
    let bodies = bodies(40);
    let labels = impatient_labels(&bodies);
    let once = fit(&bodies, &labels, WorseWeights::Accept).unwrap();
    assert_eq!(once, fit(&bodies, &labels, WorseWeights::Accept).unwrap());
}

#[test]
fn too_few_labels_are_refused() {
    let bodies = bodies(40);
    let refused =
        fit(&bodies, &impatient_labels(&bodies[..24]), WorseWeights::Accept).unwrap_err().to_string();
    assert!(refused.contains("24 labelled conversations are too few, 25 are needed"), "{refused}");
    fit(&bodies, &impatient_labels(&bodies[..25]), WorseWeights::Accept).unwrap();
}

#[test]
fn unhelpful_labels_are_refused_unless_forced() {
    let bodies = bodies(50);
    // The shipped scores with a jitter that no input explains: every fit is worse.
    let scorer = Scorer::builtin().unwrap();
    let labels: Vec<Value> = bodies
        .iter()
        .enumerate()
        .map(|(index, body)| {
            let score = axis(&scorer, body).dimensions.resolution_accuracy.score.value();
            let jitter = if index * 7 % 5 == 0 { 0.4 } else { -0.1 };
            json!({"ticket_id": body["ticket_id"], "resolution_accuracy": (score + jitter).clamp(1.0, 5.0)})
        })
        .collect();
    let refused = fit(&bodies, &labels, WorseWeights::Refuse).unwrap_err();
    assert!(matches!(refused, FitError::Worse { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("--force") && text.contains("the adapted weights do not agree better"), "{text}");
    fit(&bodies, &labels, WorseWeights::Accept).unwrap();
}

#[test]
fn ids_that_do_not_match_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = bodies(30);
    let mut labels = impatient_labels(&bodies[..27]);
    labels.push(json!({"ticket_id": "nobody", "interaction_effort": 3}));
    let reviewed: ReviewedConversations = reviewed(folder.path(), &bodies, &labels);
    assert_eq!((reviewed.count(), reviewed.unlabelled, reviewed.unmatched), (27, 3, 1));
    let report = fit_weights(&reviewed, WorseWeights::Accept).unwrap().report;
    assert!(
        report.starts_with(
            "27 labelled conversations; conversations without a label: 3; labels without a conversation: 1"
        ),
        "{report}"
    );
}
