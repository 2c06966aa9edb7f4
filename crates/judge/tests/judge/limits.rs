//! Operator limits: spending, and the size of transcripts that are sent.

use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_judge::{Judge, JudgeConfig};
use assay_testkit::stub_judge::Reply;

use crate::fixture::{Fixture, SOLVED, config, good};

/// In US dollars. A request is estimated at between this and twice as much: 1000 answer tokens and about 4000 prompt tokens.
const MIN_ESTIMATE: f64 = 0.005;

#[tokio::test]
async fn spending_cap_stops_requests() {
    let fixture = Fixture::with(good, |config| config.daily_usd_cap = 2.0 * MIN_ESTIMATE);
    let mut judged = 0;
    let last = loop {
        let evaluation = fixture.evaluate(&SOLVED).await;
        if evaluation.scorer.kind != ScorerKind::Judge {
            break evaluation;
        }
        judged += 1;
        assert!(judged < 10, "each costs 0.0014 dollars");
    };
    assert!(judged >= 1);
    fixture.assert_fell_back(&SOLVED, &last, FallbackReason::SpendingCap);
    let used = last.scorer.judge.clone().unwrap();
    assert_eq!((used.attempts, used.cost_usd, used.latency_ms), (0, 0.0, 0));
    let next = fixture.evaluate(&SOLVED).await;
    fixture.assert_fell_back(&SOLVED, &next, FallbackReason::SpendingCap);
    assert_eq!(fixture.requests(), judged);
}

#[tokio::test]
async fn lost_answers_count_against_the_cap() {
    let change = |config: &mut JudgeConfig| {
        config.daily_usd_cap = 2.0 * MIN_ESTIMATE;
        config.attempts = 1;
    };
    let fixture = Fixture::with(|_| Reply::Cut, change);
    let first = fixture.evaluate(&SOLVED).await;
    fixture.assert_fell_back(&SOLVED, &first, FallbackReason::Unavailable);
    assert!(first.scorer.judge.as_ref().unwrap().cost_usd >= MIN_ESTIMATE, "{:?}", first.scorer);
    let second = fixture.evaluate(&SOLVED).await;
    fixture.assert_fell_back(&SOLVED, &second, FallbackReason::SpendingCap);
}

#[tokio::test]
async fn too_long_conversation_is_not_sent() {
    let fixture = Fixture::with(good, |config| config.max_transcript_bytes = 1024);
    let long = "Where is it? ".repeat(100);
    let items = [("contact", long.as_str()), ("ai", "It is on its way."), ("contact", "Thanks!")];
    let evaluation = fixture.evaluate(&items).await;
    fixture.assert_fell_back(&items, &evaluation, FallbackReason::TranscriptTooLong);
    assert_eq!(fixture.requests(), 0);
}

#[test]
fn judge_is_off_without_url() {
    let mut config = config(" ");
    // Invalid: without a judge no setting is checked.
    config.attempts = 0;
    assert!(Judge::open(&config).unwrap().is_none());
}
