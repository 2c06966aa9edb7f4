//! Endpoints that are slow, busy, broken or gone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_contracts::evaluation::{FallbackReason, ScorerKind};
use assay_judge::Judge;
use assay_testkit::stub_judge::{Question, Reply};

use crate::stage::{Behaviour, SOLVED, Stage, config, conversation, good, status};

/// Behaves so on the first request, and well from then on.
fn first(reply: impl Fn(&Question) -> Reply + Send + Sync) -> impl Fn(&Question) -> Reply + Send + Sync {
    move |question| if question.index == 0 { reply(question) } else { good(question) }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let temporary: [Behaviour; 5] = [
        |_| status(500, "oops"),
        |_| status(503, "overloaded"),
        |_| status(429, "slow down"),
        |_| Reply::Cut,
        |_| Reply::Raw(502, "Retry-After: 0\r\n".to_owned(), "<html>bad gateway</html>".to_owned()),
    ];
    for (number, reply) in temporary.into_iter().enumerate() {
        let stage = Stage::new(first(reply));
        let scorer = stage.evaluate(&SOLVED).await.scorer;
        assert_eq!(scorer.kind, ScorerKind::Judge, "{number}: {scorer:?}");
        assert_eq!(scorer.judge.unwrap().attempts, 2, "{number}");
    }
}

#[tokio::test]
async fn an_endpoint_is_not_asked_again_before_the_time_that_it_names() {
    let busy = |_: &Question| Reply::Raw(429, "Retry-After: 1\r\n".to_owned(), String::new());
    let stage = Stage::new(first(busy));
    assert_eq!(stage.evaluate(&SOLVED).await.scorer.kind, ScorerKind::Judge);
    let questions = stage.stub.questions();
    assert!(questions[1].at - questions[0].at >= Duration::from_millis(990));
}

#[tokio::test]
async fn a_pause_beyond_the_timeout_is_not_waited_for_and_kept_by_all() {
    let busy = |_: &Question| Reply::Raw(429, "Retry-After: 3600\r\n".to_owned(), String::new());
    let stage = Stage::new(busy);
    let evaluation = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &evaluation, FallbackReason::RateLimited);
    let next = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &next, FallbackReason::Unavailable);
    assert_eq!(stage.requests(), 1);
}

#[tokio::test]
async fn attempts_end() {
    let stage = Stage::with(|_| status(500, "oops"), |config| config.attempts = 3);
    let evaluation = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &evaluation, FallbackReason::Unavailable);
    let judge = evaluation.scorer.judge.unwrap();
    assert_eq!((judge.attempts, judge.cost_usd), (3, 0.0), "a failure of the endpoint costs nothing");
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again() {
    let lasting: [(Behaviour, FallbackReason); 6] = [
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
    for (reply, reason) in lasting {
        let stage = Stage::new(reply);
        let evaluation = stage.evaluate(&SOLVED).await;
        stage.assert_fell_back(&SOLVED, &evaluation, reason);
        assert_eq!(stage.requests(), 1, "{reason:?}");
    }
}

#[tokio::test]
async fn a_judgement_ends_with_its_timeout_and_its_request_is_paid() {
    let stage = Stage::with(|_| Reply::Hold, |config| config.timeout_milliseconds = 200);
    let evaluation = stage.evaluate(&SOLVED).await;
    stage.assert_fell_back(&SOLVED, &evaluation, FallbackReason::Timeout);
    let judge = evaluation.scorer.judge.unwrap();
    assert_eq!(judge.attempts, 1);
    assert!(judge.latency_ms >= 200 && judge.cost_usd > 0.0, "{judge:?}");
}

#[tokio::test]
async fn nobody_listens() {
    // A port that was free a moment ago, and whose stub is gone.
    let url = assay_testkit::stub_judge::StubJudge::start(good).unwrap().url();
    let judge = Judge::open(&config(&url)).unwrap().unwrap();
    let scorer = assay_scoring::Scorer::builtin().unwrap();
    let conversation = conversation(&SOLVED);
    let evaluation = judge.evaluate(&scorer, &conversation, scorer.evaluate(&conversation)).await;
    assert_eq!(evaluation.scorer.judge.unwrap().fallback_reason, Some(FallbackReason::Unavailable));
}

#[tokio::test]
async fn an_endpoint_that_fails_again_and_again_is_left_alone() {
    let stage = Stage::with(|_| status(500, "oops"), |config| config.attempts = 1);
    for _ in 0..10 {
        let evaluation = stage.evaluate(&SOLVED).await;
        stage.assert_fell_back(&SOLVED, &evaluation, FallbackReason::Unavailable);
    }
    assert_eq!(stage.requests(), 3);
}

#[tokio::test]
async fn unusable_answers_are_no_reason_to_leave_an_endpoint_alone() {
    let stage = Stage::new(|_| Reply::Text("no".to_owned()));
    for _ in 0..5 {
        stage.evaluate(&SOLVED).await;
    }
    assert_eq!(stage.requests(), 10);
}

#[tokio::test]
async fn a_parameter_that_the_endpoint_does_not_take_is_left_away_from_then_on() {
    let stage = Stage::with(
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
        assert_eq!(stage.evaluate(&SOLVED).await.scorer.kind, ScorerKind::Judge);
        assert_eq!(stage.requests(), requests);
    }
}

#[tokio::test]
async fn no_more_judgements_are_under_way_than_there_are_places() {
    static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let answer = |question: &Question| {
        MOST.fetch_max(UNDER_WAY.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Long enough for all others to come in if they may.
        std::thread::sleep(Duration::from_millis(30));
        UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
        good(question)
    };
    let stage = Stage::with(answer, |config| config.concurrency = 2);
    let evaluations: [_; 6] = std::array::from_fn(|_| stage.evaluate(&SOLVED));
    let [one, two, three, four, five, six] = evaluations;
    tokio::join!(one, two, three, four, five, six);
    assert_eq!(stage.requests(), 6);
    assert!(MOST.load(Ordering::SeqCst) <= 2);
}
