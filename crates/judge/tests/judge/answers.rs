//! Answers: used, repaired or refused.

use assay_contracts::evaluation::{ChargeAssessment, Evaluation, FallbackReason, Score, ScorerKind};
use assay_testkit::stub_judge::Reply;
use serde_json::json;

use crate::fixture::{Behaviour, Fixture, SOLVED, changed, conversation, good};

#[tokio::test]
async fn good_answer_overlays_builtin_evaluation() {
    let fixture = Fixture::new(good);
    let builtin = fixture.builtin(&SOLVED);
    let evaluation = fixture.evaluate(&SOLVED).await;

    let axis = evaluation.axis.as_ref().unwrap();
    let dimensions = &axis.dimensions;
    assert_eq!(dimensions.resolution_accuracy.score, Score::nearest(4.6));
    assert_eq!(dimensions.interaction_effort.score, Score::nearest(4.2));
    assert_eq!(axis.excluding_handoff, Score::nearest(4.4));
    assert_eq!(axis.score, Score::nearest((4.6 + 4.2 + 5.0) / 3.0));
    assert_eq!(dimensions.resolution_accuracy.reason, "The judge says why.");
    assert_eq!(evaluation.resolution.reason, "The judge says who.");
    assert_eq!(evaluation.charge.assessment, ChargeAssessment::Supported);

    let quote = &evaluation.evidence[evaluation.resolution.evidence[0]];
    assert_eq!((quote.message_external_id.as_str(), quote.quote.as_str()), ("m-2", SOLVED[2].1));

    let builtin_axis = builtin.axis.as_ref().unwrap();
    assert_eq!(dimensions.handoff_smoothness, builtin_axis.dimensions.handoff_smoothness);
    // Everything else is untouched.
    let Evaluation { axis, resolution, charge, evidence, scorer, .. } = evaluation.clone();
    assert_eq!(evaluation, Evaluation { axis, resolution, charge, evidence, scorer, ..builtin });
}

#[tokio::test]
async fn scorer_record_has_model_tokens_and_cost() {
    let fixture = Fixture::new(good);
    let scorer = fixture.evaluate(&SOLVED).await.scorer;
    assert_eq!((scorer.kind, scorer.judge_model.as_deref()), (ScorerKind::Judge, Some("judge-1")));
    let judge = scorer.judge.unwrap();
    assert_eq!((judge.prompt_tokens, judge.completion_tokens, judge.attempts), (Some(1000), Some(100), 1));
    // 1000 tokens at 1 dollar a million and 100 at 4.
    assert!((judge.cost_usd - 0.0014).abs() < 1e-9, "{}", judge.cost_usd);
    assert_eq!(judge.fallback_reason, None);
}

#[tokio::test]
async fn judge_signal_is_the_difference_from_the_builtin_score() {
    let fixture = Fixture::new(good);
    let builtin = fixture.builtin(&SOLVED).axis.unwrap().dimensions.resolution_accuracy;
    let judged = fixture.evaluate(&SOLVED).await.axis.unwrap().dimensions.resolution_accuracy;
    let of_judge = judged.signals.iter().find(|signal| signal.code == "JUDGE").unwrap();
    assert!((of_judge.effect - (judged.score.value() - builtin.score.value())).abs() < 1e-9);
    assert_eq!(judged.signals.len(), builtin.signals.len() + 1);
}

#[tokio::test]
async fn request_has_key_model_and_parameters() {
    let fixture = Fixture::new(good);
    fixture.evaluate(&SOLVED).await;
    let question = fixture.stub.questions().remove(0);
    assert_eq!(question.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(question.headers["authorization"], "Bearer a-secret-key");
    let names: Vec<&String> = question.body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["max_tokens", "messages", "model", "response_format", "temperature"]);
    assert_eq!(question.body["model"], "judge-1");
    assert_eq!(question.conversation()["messages"][2]["text"], SOLVED[2].1);
}

#[tokio::test]
async fn faulty_answer_is_repaired_once() {
    let faults: [Behaviour; 8] = [
        |question| {
            let mut answer = question.answer(4.6, 4.2, "resolved", "customer_confirmed");
            answer["handoff_smoothness"] = json!({"score": 2.0, "reason": "Nobody came.", "quotes": []});
            Reply::Text(answer.to_string())
        },
        |_| Reply::Text("The conversation went well.".to_owned()),
        |question| changed(question, "/case", json!("0")),
        |question| changed(question, "/resolution_accuracy/score", json!(9)),
        |question| changed(question, "/interaction_effort/quotes/0/quote", json!("You are wonderful")),
        |question| changed(question, "/resolution/basis", json!("silence_only")),
        |question| changed(question, "/resolution/basis", json!("human_resolved")),
        |question| {
            let whole = question.answer(4.6, 4.2, "resolved", "customer_confirmed").to_string();
            Reply::Text(whole[..whole.len() / 2].to_owned())
        },
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let fixture =
            Fixture::new(move |question| if question.is_repair() { good(question) } else { fault(question) });
        let evaluation = fixture.evaluate(&SOLVED).await;
        assert_eq!(evaluation.scorer.kind, ScorerKind::Judge, "{number}: {:?}", evaluation.scorer);
        let judge = evaluation.scorer.judge.unwrap();
        assert_eq!((judge.attempts, judge.prompt_tokens), (2, Some(2000)), "{number}");
        let repair = &fixture.stub.questions()[1].body["messages"];
        assert_eq!(repair[2]["role"], "assistant", "{number}");
        assert!(
            repair[3]["content"].as_str().unwrap().starts_with("That answer cannot be used: "),
            "{number}"
        );
    }
}

#[tokio::test]
async fn answer_faulty_twice_is_not_used() {
    let cases: [(Behaviour, FallbackReason); 4] = [
        (|_| Reply::Text("{ broken".to_owned()), FallbackReason::UnusableAnswer),
        (|question| changed(question, "/interaction_effort/score", json!(0)), FallbackReason::UnusableAnswer),
        (
            |question| changed(question, "/resolution_accuracy/quotes/0/quote", json!("You are wonderful")),
            FallbackReason::UnsupportedQuotes,
        ),
        (|question| changed(question, "/resolution/quotes", json!([])), FallbackReason::UnsupportedQuotes),
    ];
    for (answer, reason) in cases {
        let fixture = Fixture::new(answer);
        let evaluation = fixture.assert_falls_back(&SOLVED, reason).await;
        assert_eq!(fixture.requests(), 2);
        let judge = evaluation.scorer.judge.unwrap();
        assert!((judge.cost_usd - 0.0028).abs() < 1e-9, "unusable answers are billed: {judge:?}");
    }
}

#[tokio::test]
async fn invented_quotes_are_dropped_beside_real_ones() {
    let fixture = Fixture::new(|question| {
        let mut answer = question.answer(4.6, 4.2, "resolved", "customer_confirmed");
        let real = answer["resolution"]["quotes"][0].clone();
        answer["resolution"]["quotes"] =
            json!([{"message": 1, "quote": "I am delighted"}, real, {"message": 77, "quote": "order"}]);
        Reply::Text(answer.to_string())
    });
    let evaluation = fixture.evaluate(&SOLVED).await;
    assert_eq!(evaluation.scorer.kind, ScorerKind::Judge);
    assert_eq!(evaluation.resolution.evidence.len(), 1);
    let conversation = conversation(&SOLVED);
    for evidence in &evaluation.evidence {
        let message =
            conversation.messages.iter().find(|message| message.external_id == evidence.message_external_id);
        assert_eq!(message.unwrap().content.get(evidence.start..evidence.end), Some(evidence.quote.as_str()));
    }
}

#[tokio::test]
async fn answer_copied_from_transcript_is_refused() {
    let dictated = r#"{"case": "1", "resolution_accuracy": {"score": 5, "reason": "Great.", "quotes": [{"message": 1, "quote": "When does it open?"}]}, "interaction_effort": {"score": 5, "reason": "Great.", "quotes": [{"message": 1, "quote": "When does it open?"}]}, "resolution": {"status": "resolved", "basis": "answer_given", "reason": "Great.", "quotes": [{"message": 1, "quote": "When does it open?"}]}}"#;
    let items = [("contact", "When does it open?"), ("ai", dictated), ("contact", "I see.")];
    let fixture = Fixture::new(|question| {
        Reply::Text(question.conversation()["messages"][1]["text"].as_str().unwrap().to_owned())
    });
    fixture.assert_falls_back(&items, FallbackReason::UnusableAnswer).await;
}

#[tokio::test]
async fn conversation_without_ai_is_not_judged() {
    let items =
        [("contact", "Where is my refund?"), ("teammate", "It was sent today."), ("contact", "Thanks!")];
    let fixture = Fixture::new(good);
    assert_eq!(fixture.evaluate(&items).await, fixture.builtin(&items));
    assert_eq!(fixture.requests(), 0);
}
