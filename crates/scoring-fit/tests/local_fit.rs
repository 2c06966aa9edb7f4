//! Adapting the shipped weights to reviewers who have opinions of their own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use assay_scoring::Scorer;
use assay_scoring::weights_file::WeightsFile;
use assay_scoring_fit::{FitError, Fitted, Reviewed, WorseWeights, fit_local};
use serde_json::{Value, json};
use support::{bodies, customer_messages, ending, reviewed};

/// A reviewer who dislikes every further message that a customer must write, and nothing else.
fn impatient(bodies: &[Value]) -> Vec<Value> {
    let label = |body: &Value| {
        let points = 5.2 - 0.45 * customer_messages(body) as f64;
        json!({"ticket_id": body["ticket_id"], "interaction_effort": points.clamp(1.0, 5.0)})
    };
    bodies.iter().map(label).collect()
}

fn figure(fitted: &Fitted, name: &str) -> f64 {
    let file: WeightsFile = serde_json::from_str(&fitted.text).unwrap();
    file.manifest.figures[name]
}

fn fit(bodies: &[Value], labels: &[Value], worse: WorseWeights) -> Result<Fitted, FitError> {
    let folder = tempfile::tempdir().unwrap();
    fit_local(&reviewed(folder.path(), bodies, labels), worse)
}

#[test]
fn sixty_labels_of_an_impatient_reviewer_improve_agreement_on_conversations_left_out() {
    let bodies = bodies(60);
    let fitted = fit(&bodies, &impatient(&bodies), WorseWeights::Refuse).unwrap();
    let rho = |whose: &str| figure(&fitted, &format!("interaction effort: rho, {whose}"));
    assert!(rho("adapted") > rho("shipped") + 0.05, "{}", fitted.report);
    let error = |whose: &str| figure(&fitted, &format!("interaction effort: mean error, {whose}"));
    assert!(error("adapted") < error("shipped"), "{}", fitted.report);
    assert!(fitted.report.contains("resolution accuracy stays as shipped: it has too few labels"));
}

#[test]
fn adapted_weights_are_taken_by_the_engine_and_change_only_what_was_labelled() {
    let bodies = bodies(60);
    let fitted = fit(&bodies, &impatient(&bodies), WorseWeights::Refuse).unwrap();
    Scorer::fitted(&fitted.text).unwrap();
    let adapted: WeightsFile = serde_json::from_str(&fitted.text).unwrap();
    let shipped: WeightsFile = serde_json::from_str(assay_scoring::BUILTIN_WEIGHTS).unwrap();
    assert_eq!(adapted.dimensions.resolution_accuracy, shipped.dimensions.resolution_accuracy);
    assert_ne!(adapted.dimensions.interaction_effort, shipped.dimensions.interaction_effort);
    let (of_adapted, of_shipped) =
        (&adapted.dimensions.interaction_effort, &shipped.dimensions.interaction_effort);
    assert_eq!(of_adapted.brief.trees, of_shipped.brief.trees);
    assert_eq!(of_adapted.detailed.trees, of_shipped.detailed.trees);
    assert!(adapted.wording.is_none(), "sixty labels are too few for words");
}

#[test]
fn a_kind_of_opening_with_few_labels_keeps_the_shipped_model() {
    const BRIEF: &str = "Where is my order?";
    const DETAILED: &str = "My order has not arrived. I have asked three times, waited for more than two weeks, and \
        every time somebody told me that it would be here on the next morning, which it never was. Please find out \
        where it is, and tell me the truth this time.";
    let shipped: WeightsFile = serde_json::from_str(assay_scoring::BUILTIN_WEIGHTS).unwrap();
    let shipped = shipped.dimensions.interaction_effort;
    let cases = [("none", 0, true, false), ("few", 12, true, false), ("enough of both", 30, true, true)];
    for (name, detailed, adapts_brief, adapts_detailed) in cases {
        let mut bodies = bodies(60);
        for (index, body) in bodies.iter_mut().enumerate() {
            open_with(body, if index < detailed { DETAILED } else { BRIEF });
        }
        let fitted = fit(&bodies, &impatient(&bodies), WorseWeights::Accept).unwrap();
        let file: WeightsFile = serde_json::from_str(&fitted.text).unwrap();
        let adapted = file.dimensions.interaction_effort;
        assert_eq!(adapted.brief != shipped.brief, adapts_brief, "{name}");
        assert_eq!(adapted.detailed != shipped.detailed, adapts_detailed, "{name}");
    }
}

/// Gives the customer other first words; an answer follows them at once.
fn open_with(body: &mut Value, opening: &str) {
    let messages = body["messages"].as_array_mut().unwrap();
    let first = messages.iter().position(|message| message["author"]["type"] == "contact").unwrap();
    messages[first]["content"] = json!(opening);
    let mut answer = messages[first].clone();
    answer["author"] = json!({"type": "ai", "external_id": "helper"});
    answer["content"] = json!("Let me look that up.");
    answer["external_id"] = json!("answer-to-the-opening");
    messages.insert(first + 1, answer);
}

#[test]
fn the_same_labels_give_the_same_bytes() {
    let bodies = bodies(40);
    let labels = impatient(&bodies);
    let once = fit(&bodies, &labels, WorseWeights::Accept).unwrap();
    assert_eq!(once, fit(&bodies, &labels, WorseWeights::Accept).unwrap());
}

#[test]
fn fewer_than_twenty_five_labels_are_refused_with_their_number() {
    let bodies = bodies(40);
    let refused = fit(&bodies, &impatient(&bodies[..24]), WorseWeights::Accept).unwrap_err().to_string();
    assert!(refused.contains("24 labelled conversations are too few, 25 are needed"), "{refused}");
    fit(&bodies, &impatient(&bodies[..25]), WorseWeights::Accept).unwrap();
}

#[test]
fn labels_without_sense_are_refused_unless_they_are_accepted_on_purpose() {
    let bodies = bodies(50);
    // The shipped scores themselves with a jitter that nothing explains: whatever is learnt from it is worse.
    let scorer = Scorer::builtin().unwrap();
    let labels: Vec<Value> = bodies
        .iter()
        .enumerate()
        .map(|(index, body)| {
            let parsed =
                assay_contracts::conversation::Conversation::parse(body.to_string().as_bytes()).unwrap();
            let score = scorer.evaluate(&parsed).axis.unwrap().dimensions.resolution_accuracy.score.value();
            let jitter = if index * 7 % 5 == 0 { 0.4 } else { -0.1 };
            json!({"ticket_id": body["ticket_id"], "resolution_accuracy": (score + jitter).clamp(1.0, 5.0)})
        })
        .collect();
    let refused = fit(&bodies, &labels, WorseWeights::Refuse).unwrap_err();
    assert!(matches!(refused, FitError::Worse { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("--force") && text.contains("the adapted weights agree less"), "{text}");
    fit(&bodies, &labels, WorseWeights::Accept).unwrap();
}

#[test]
fn from_two_hundred_labels_on_words_may_help() {
    let mut bodies = bodies(210);
    // What this reviewer likes is said in words that no feature knows.
    for (index, body) in bodies.iter_mut().enumerate() {
        let word = if index * 5 % 7 < 3 { "zebra" } else { "walrus" };
        body["messages"][0]["content"] = json!(format!("My {word} subscription shows the wrong plan."));
    }
    let labels: Vec<Value> = bodies
        .iter()
        .enumerate()
        .map(|(index, body)| {
            let points = if index * 5 % 7 < 3 { 4.3 } else { 2.2 };
            json!({"ticket_id": body["ticket_id"], "resolution_accuracy": points - 0.1 * ending(index) as f64})
        })
        .collect();
    let fitted = fit(&bodies, &labels, WorseWeights::Accept).unwrap();
    let file: WeightsFile = serde_json::from_str(&fitted.text).unwrap();
    let head = file.wording.as_ref().unwrap().heads.resolution_accuracy.as_ref().unwrap();
    assert!(head.share <= 1.0 / 3.0 && head.weights.len() > 10);
    let rho = |whose: &str| figure(&fitted, &format!("resolution accuracy: rho, {whose}"));
    assert!(rho("adapted") > rho("shipped") + 0.1, "{}", fitted.report);
    let scorer = Scorer::fitted(&fitted.text).unwrap();
    let parsed = |index: usize| {
        assay_contracts::conversation::Conversation::parse(bodies[index].to_string().as_bytes()).unwrap()
    };
    let evaluations = (0..40).map(|index| scorer.evaluate(&parsed(index)));
    let named = evaluations.filter_map(|evaluation| evaluation.axis).any(|axis| {
        axis.dimensions.resolution_accuracy.signals.iter().any(|signal| signal.code == "LOCAL_WORDING")
    });
    assert!(named, "what words moved is a signal of its own");
}

#[test]
fn ids_that_do_not_match_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = bodies(30);
    let mut labels = impatient(&bodies[..27]);
    labels.push(json!({"ticket_id": "nobody", "interaction_effort": 3}));
    let reviewed: Reviewed = reviewed(folder.path(), &bodies, &labels);
    assert_eq!((reviewed.count(), reviewed.unlabelled, reviewed.unmatched), (27, 3, 1));
    let report = fit_local(&reviewed, WorseWeights::Accept).unwrap().report;
    assert!(
        report.starts_with(
            "27 labelled conversations; conversations without a label: 3; labels without a conversation: 1"
        ),
        "{report}"
    );
}
