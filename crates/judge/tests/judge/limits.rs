//! Limits that an operator sets: money, and what leaves the house.

use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_judge::{Judge, JudgeConfig};
use assay_testkit::stub_judge::Reply;

use crate::stage::{SOLVED, Stage, config, good};

/// An estimate of one request is between this and the double of it: 1000 answer tokens, some 4000 of the prompt.
const ESTIMATE: f64 = 0.005;

#[tokio::test]
async fn nothing_is_asked_beyond_the_spending_cap() {
    let stage = Stage::with(good, |config| config.daily_usd_cap = 2.0 * ESTIMATE);
    let mut judged = 0;
    let last = loop {
        let evaluation = stage.evaluate(&SOLVED).await;
        if evaluation.scorer.kind != ScorerKind::Judge {
            break evaluation;
        }
        judged += 1;
        assert!(judged < 10, "0.0014 dollars each");
    };
    assert!(judged >= 1);
    stage.assert_fell_back(&SOLVED, &last, FallbackReason::SpendingCap);
    let used = last.scorer.judge.clone().unwrap();
    assert_eq!((used.attempts, used.cost_usd, used.latency_ms), (0, 0.0, 0));
    let next = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &next, FallbackReason::SpendingCap);
    assert_eq!(stage.requests(), judged);
}

#[tokio::test]
async fn answers_that_get_lost_count_against_the_cap() {
    let change = |config: &mut JudgeConfig| {
        config.daily_usd_cap = 2.0 * ESTIMATE;
        config.attempts = 1;
    };
    let stage = Stage::with(|_| Reply::Cut, change);
    let first = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &first, FallbackReason::Unavailable);
    assert!(first.scorer.judge.as_ref().unwrap().cost_usd >= ESTIMATE, "{:?}", first.scorer);
    let second = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &second, FallbackReason::SpendingCap);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_not_sent() {
    let stage = Stage::with(good, |config| config.max_transcript_bytes = 1024);
    let long = "Where is it? ".repeat(100);
    let items = [("contact", long.as_str()), ("ai", "It is on its way."), ("contact", "Thanks!")];
    let evaluation = stage.evaluate(&items).await;
    stage.assert_fell_back(&items, &evaluation, FallbackReason::TranscriptTooLong);
    assert_eq!(stage.requests(), 0);
}

#[test]
fn without_an_address_there_is_no_judge_whatever_else_is_set() {
    let mut config = config(" ");
    config.attempts = 0;
    assert!(Judge::open(&config).unwrap().is_none());
}
