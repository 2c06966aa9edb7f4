//! The messages of `probe` for unusable endpoints.

use assay_judge::{JudgeConfig, ProbeReport, probe};
use assay_testkit::stub_judge::{Question, Reply, StubJudge};
use serde_json::json;

use crate::fixture::{Behaviour, changed, config, status};

fn honest(question: &Question) -> Reply {
    Reply::Text(question.answer(1.5, 2.0, "not_resolved", "customer_rejected").to_string())
}

async fn error_with(
    answer: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(&mut JudgeConfig),
) -> String {
    let stub = StubJudge::start(answer).unwrap();
    let mut config = config(&stub.url());
    change(&mut config);
    let error = probe(&config).await.unwrap_err().to_string();
    assert!(!error.contains("a-secret-key"), "{error}");
    error
}

#[tokio::test]
async fn probe_reports_requests_tokens_and_cost() {
    let stub = StubJudge::start(honest).unwrap();
    let report = probe(&config(&stub.url())).await.unwrap();
    let ProbeReport { url, model, requests, prompt_tokens, completion_tokens, cost_usd, .. } = report;
    assert_eq!((model.as_str(), requests), ("judge-1", 1));
    assert_eq!(url, format!("{}/chat/completions", stub.url()));
    assert_eq!((prompt_tokens, completion_tokens), (Some(1000), Some(100)));
    assert!((cost_usd - 0.0014).abs() < 1e-9);
}

#[tokio::test]
async fn every_error_has_its_own_message() {
    let cases: [(Behaviour, &str); 16] = [
        (|_| status(401, "Incorrect API key: a-secret-key"), "refuses the key (status 401)"),
        (|_| status(403, ""), "refuses the key (status 403)"),
        (|_| status(404, "no model judge-1"), "has no model judge-1 (status 404)"),
        (
            |_| Reply::Raw(429, "Retry-After: 7\r\n".to_owned(), String::new()),
            "quota is used up, and asks to wait 7 s",
        ),
        (|_| status(500, "oops"), "fails on its side (status 500)"),
        (
            |_| status(400, "no\nsuch parameter"),
            "refuses the request (status 400); it says: no such parameter",
        ),
        (
            |_| Reply::Raw(301, "Location: https://new.example/v1\r\n".to_owned(), String::new()),
            "redirect (301) to https://new.example/v1",
        ),
        (|_| Reply::Raw(200, String::new(), "<html>".to_owned()), "is not JSON"),
        (|_| Reply::Raw(200, String::new(), "{}".to_owned()), "is not a chat completion"),
        (|_| Reply::Cut, "the connection was closed"),
        (|_| Reply::Endless, "longer than 65536 bytes"),
        (
            |_| Reply::Text("It went well.".to_owned()),
            "does not follow the answer format, even when it is asked to correct its answer: it holds no JSON object",
        ),
        (
            |question| {
                let quotes = json!([{"message": 3, "quote": "Thank you so much"}]);
                changed(question, "/resolution_accuracy/quotes", quotes)
            },
            "invents quotes",
        ),
        (|question| changed(question, "/interaction_effort/quotes", json!([])), "invents quotes"),
        (
            |question| changed(question, "/interaction_effort/score", json!(7)),
            "\"interaction_effort.score\" must be a number from 1.0 to 5.0",
        ),
        (
            |question| Reply::Text(question.answer(5.0, 5.0, "resolved", "answer_given").to_string()),
            "obeys the conversation",
        ),
    ];
    for (answer, words) in cases {
        let error = error_with(answer, |_| ()).await;
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[tokio::test]
async fn connection_and_setting_errors_have_messages() {
    let error = error_with(|_| status(401, ""), |config| config.key = String::new().into()).await;
    assert!(error.contains("wants a key"), "{error}");
    let error = error_with(|_| Reply::Hold, |config| config.timeout_milliseconds = 200).await;
    assert!(error.contains("no usable answer within 200 ms"), "{error}");
    let error = error_with(honest, |config| config.url = config.url.replace("http://", "https://")).await;
    assert!(error.contains("no TLS connection"), "{error}");
    let error = error_with(honest, |config| config.url = "http://judge.invalid/v1".to_owned()).await;
    assert!(error.contains("judge.invalid cannot be resolved"), "{error}");
    let error = error_with(honest, |config| config.daily_usd_cap = 0.000_001).await;
    assert!(error.contains("daily_usd_cap"), "{error}");
    let error = error_with(honest, |config| config.url = String::new()).await;
    assert!(error.contains("no judge is set"), "{error}");
    // The stub is dropped: its port refuses connections.
    let refusing = StubJudge::start(honest).unwrap().url();
    let error = error_with(honest, |config| config.url = refusing).await;
    assert!(error.contains("nothing listens on port"), "{error}");
}
