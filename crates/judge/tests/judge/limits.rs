//! Operator limits: spending, and the size of transcripts that are sent.

use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_judge::{Judge, JudgeConfig};
use assay_testkit::stub_judge::Reply;

use crate::fixture::{Fixture, SOLVED, config, good};

/// In US dollars, at the prices of `fixture::config`: 1 for a million prompt tokens, 4 for a million answer tokens. A request is
/// estimated at about 0.008, between this and twice as much: 0.004 for 1000 answer tokens and 0.004 for about 4000 prompt tokens.
const MIN_ESTIMATE: f64 = 0.005;

#[tokio::test]
async fn spending_cap_stops_requests() {
    let fixture = Fixture::with(good, |config| config.daily_usd_cap = 2.0 * MIN_ESTIMATE);
    let mut judged = 0;
    while fixture.evaluate(&SOLVED).await.scorer.kind == ScorerKind::Judge {
        judged += 1;
        assert!(judged < 10, "far more than the cap allows at the prices of `fixture::config`");
    }
    assert!(judged >= 1);
    let refused = fixture.assert_falls_back(&SOLVED, FallbackReason::SpendingCap).await;
    let used = refused.scorer.judge.unwrap();
    assert_eq!((used.attempts, used.cost_usd, used.latency_ms), (0, 0.0, 0));
    assert_eq!(fixture.requests(), judged);
}

#[tokio::test]
async fn lost_answers_count_against_the_cap() {
    let change = |config: &mut JudgeConfig| {
        config.daily_usd_cap = 2.0 * MIN_ESTIMATE;
        config.attempts = 1;
    };
    let fixture = Fixture::with(|_| Reply::Cut, change);
    let first = fixture.assert_falls_back(&SOLVED, FallbackReason::Unavailable).await;
    assert!(first.scorer.judge.as_ref().unwrap().cost_usd >= MIN_ESTIMATE, "{:?}", first.scorer);
    fixture.assert_falls_back(&SOLVED, FallbackReason::SpendingCap).await;
}

#[tokio::test]
async fn too_long_conversation_is_not_sent() {
    let fixture = Fixture::with(good, |config| config.max_transcript_bytes = 1024);
    let long = "Where is it? ".repeat(100);
    let items = [("contact", long.as_str()), ("ai", "It is on its way."), ("contact", "Thanks!")];
    fixture.assert_falls_back(&items, FallbackReason::TranscriptTooLong).await;
    assert_eq!(fixture.requests(), 0);
}

#[test]
fn judge_is_off_without_url() {
    let mut config = config(" ");
    // Invalid: without a judge no setting is checked.
    config.attempts = 0;
    assert!(Judge::open(&config).unwrap().is_none());
}
