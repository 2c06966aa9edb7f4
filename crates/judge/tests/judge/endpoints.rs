//! Slow, overloaded, broken and unreachable endpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_judge::Judge;
use assay_testkit::stub_judge::{Question, Reply};
use serde_json::json;

use crate::fixture::{Behaviour, Fixture, SOLVED, config, conversation, good, status};

/// `reply` for the first request, and good answers from then on.
fn first(reply: impl Fn(&Question) -> Reply + Send + Sync) -> impl Fn(&Question) -> Reply + Send + Sync {
    move |question| if question.index == 0 { reply(question) } else { good(question) }
}

#[tokio::test]
async fn temporary_errors_are_retried() {
    let temporary: [Behaviour; 5] = [
        |_| status(500, "oops"),
        |_| status(503, "overloaded"),
        |_| status(429, "slow down"),
        |_| Reply::Cut,
        |_| Reply::Raw(502, "Retry-After: 0\r\n".to_owned(), "<html>bad gateway</html>".to_owned()),
    ];
    for (number, reply) in temporary.into_iter().enumerate() {
        let fixture = Fixture::new(first(reply));
        let scorer = fixture.evaluate(&SOLVED).await.scorer;
        assert_eq!(scorer.kind, ScorerKind::Judge, "{number}: {scorer:?}");
        assert_eq!(scorer.judge.unwrap().attempts, 2, "{number}");
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let busy = |_: &Question| Reply::Raw(429, "Retry-After: 1\r\n".to_owned(), String::new());
    let fixture = Fixture::new(first(busy));
    assert_eq!(fixture.evaluate(&SOLVED).await.scorer.kind, ScorerKind::Judge);
    let questions = fixture.stub.questions();
    assert!(questions[1].at - questions[0].at >= Duration::from_millis(990));
}

#[tokio::test]
async fn retry_after_beyond_timeout_starts_a_cooldown() {
    let busy = |_: &Question| Reply::Raw(429, "Retry-After: 3600\r\n".to_owned(), String::new());
    let fixture = Fixture::new(busy);
    fixture.assert_falls_back(&SOLVED, FallbackReason::RateLimited).await;
    fixture.assert_falls_back(&SOLVED, FallbackReason::Unavailable).await;
    assert_eq!(fixture.requests(), 1);
}

#[tokio::test]
async fn attempts_are_limited() {
    let fixture = Fixture::with(|_| status(500, "oops"), |config| config.attempts = 3);
    let evaluation = fixture.assert_falls_back(&SOLVED, FallbackReason::Unavailable).await;
    let judge = evaluation.scorer.judge.unwrap();
    assert_eq!((judge.attempts, judge.cost_usd), (3, 0.0), "a failure of the endpoint costs nothing");
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let permanent: [(Behaviour, FallbackReason); 6] = [
        (|_| status(401, "wrong key"), FallbackReason::Refused),
        (|_| status(404, "no such model"), FallbackReason::Refused),
        (|_| status(400, "context length exceeded"), FallbackReason::Refused),
        (
            |_| Reply::Raw(302, "Location: https://elsewhere.example/\r\n".to_owned(), String::new()),
            FallbackReason::Refused,
        ),
        (
            |_| Reply::Raw(200, String::new(), "<html>Welcome!</html>".to_owned()),
            FallbackReason::UnusableAnswer,
        ),
        (|_| Reply::Endless, FallbackReason::UnusableAnswer),
    ];
    for (reply, reason) in permanent {
        let fixture = Fixture::new(reply);
        fixture.assert_falls_back(&SOLVED, reason).await;
        assert_eq!(fixture.requests(), 1, "{reason:?}");
    }
}

#[tokio::test]
async fn timeout_ends_judgement_and_counts_its_cost() {
    let fixture = Fixture::with(|_| Reply::Hold, |config| config.timeout_milliseconds = 200);
    let evaluation = fixture.assert_falls_back(&SOLVED, FallbackReason::Timeout).await;
    let judge = evaluation.scorer.judge.unwrap();
    assert_eq!(judge.attempts, 1);
    assert!(judge.latency_ms >= 200 && judge.cost_usd > 0.0, "{judge:?}");
}

#[tokio::test]
async fn refused_connection_falls_back() {
    // The stub is dropped: its port refuses connections.
    let url = assay_testkit::stub_judge::StubJudge::start(good).unwrap().url();
    let judge = Judge::open(&config(&url)).unwrap().unwrap();
    let scorer = assay_scoring::Scorer::builtin().unwrap();
    let conversation = conversation(&SOLVED);
    let evaluation = judge.evaluate(&scorer, &conversation, scorer.evaluate(&conversation)).await;
    assert_eq!(evaluation.scorer.judge.unwrap().fallback_reason, Some(FallbackReason::Unavailable));
}

#[tokio::test]
async fn failing_endpoint_gets_a_cooldown() {
    let fixture = Fixture::with(|_| status(500, "oops"), |config| config.attempts = 1);
    for _ in 0..10 {
        fixture.assert_falls_back(&SOLVED, FallbackReason::Unavailable).await;
    }
    // The third failure in a row starts the cooldown.
    assert_eq!(fixture.requests(), 3);
}

#[tokio::test]
async fn conversation_longer_than_the_context_starts_no_cooldown() {
    let too_long = |_: &Question| {
        let error = json!({"code": "context_length_exceeded", "message": "too many tokens"});
        Reply::Raw(400, String::new(), json!({"error": error}).to_string())
    };
    let fixture = Fixture::with(too_long, |config| config.attempts = 1);
    for _ in 0..5 {
        fixture.assert_falls_back(&SOLVED, FallbackReason::Refused).await;
    }
    assert_eq!(fixture.requests(), 5);
}

#[tokio::test]
async fn unusable_answers_start_no_cooldown() {
    let fixture = Fixture::new(|_| Reply::Text("no".to_owned()));
    for _ in 0..5 {
        fixture.evaluate(&SOLVED).await;
    }
    assert_eq!(fixture.requests(), 10, "an answer and a repair for each conversation");
}

#[tokio::test]
async fn unsupported_parameter_is_omitted_from_then_on() {
    let fixture = Fixture::with(
        |question| {
            if question.body.get("response_format").is_some() {
                status(400, "'response_format' of type 'json_object' is not supported")
            } else {
                good(question)
            }
        },
        |config| config.attempts = 1,
    );
    for requests in [2, 3] {
        assert_eq!(fixture.evaluate(&SOLVED).await.scorer.kind, ScorerKind::Judge);
        assert_eq!(fixture.requests(), requests);
    }
}

#[tokio::test]
async fn concurrency_limit_holds() {
    static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);
    static MAX_IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);
    let answer = |question: &Question| {
        MAX_IN_FLIGHT.fetch_max(IN_FLIGHT.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Long enough for excess requests to arrive.
        std::thread::sleep(Duration::from_millis(30));
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        good(question)
    };
    let fixture = Fixture::with(answer, |config| config.concurrency = 2);
    let evaluations: [_; 6] = std::array::from_fn(|_| fixture.evaluate(&SOLVED));
    let [one, two, three, four, five, six] = evaluations;
    tokio::join!(one, two, three, four, five, six);
    assert_eq!(fixture.requests(), 6);
    assert!(MAX_IN_FLIGHT.load(Ordering::SeqCst) <= 2);
}
