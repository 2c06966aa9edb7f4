//! Requests that are refused before any write.

use anyhow::Result;
use assay_contracts::tenant::Scope;
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::now;
use serde_json::{Value, json};

use crate::test_app::{TestApp, conversation};

#[tokio::test]
async fn invalid_body_is_refused_with_all_errors() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let mut invalid = conversation("T-1");
    invalid["source"] = "".into();
    invalid["messages"][0]["author"] = json!({"type": "robot"});
    invalid["messages"][0]["timestamp"] = json!(-1);
    let cases = [
        (
            invalid.to_string(),
            "invalid-request",
            vec!["/source", "/messages/0/timestamp", "/messages/0/author/type"],
        ),
        (r#"{"messages":[]}"#.to_owned(), "invalid-request", vec!["/ticket_id", "/messages"]),
        ("[]".to_owned(), "invalid-request", vec![""]),
        (String::new(), "malformed-json", vec![]),
        (r#"{"ticket_id":"\ud800"}"#.to_owned(), "malformed-json", vec![]),
    ];
    for (body, code, pointers) in cases {
        let response = app.submit_to(&app.address, app.organization, None, body.clone()).await?;
        assert_eq!(response.status(), 400, "{body}");
        let problem: Value = response.json().await?;
        assert_eq!(problem["code"], code, "{body}");
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
        assert_eq!(found, pointers, "{body}");
    }
    Ok(())
}

#[tokio::test]
async fn body_that_is_too_large_or_of_another_media_type_is_refused() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let mut large = conversation("T-1");
    large["messages"][0]["content"] = "x".repeat(app.config.max_body_bytes).into();
    assert_eq!(app.submit(&large).await?.status(), 413);
    let token = app.tokens.issue(Audience::Ingest, &app.claims(Scope::Assess), now())?;
    let request = app.http.post(format!("{}/internal/v1/conversations", app.address)).bearer_auth(token);
    let request = request.header("content-type", "text/csv").body(conversation("T-1").to_string());
    assert_eq!(request.send().await?.status(), 415);
    Ok(())
}

#[tokio::test]
async fn call_requires_a_token_with_audience_kind_and_scope() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let path = "/internal/v1/conversations";
    let body = conversation("T-1").to_string();
    let url = format!("{}{path}", app.address);
    assert_eq!(app.http.post(&url).body(body.clone()).send().await?.status(), 401);
    let foreign = app.tokens.issue(Audience::AgentRegistry, &app.claims(Scope::Assess), now())?;
    assert_eq!(app.http.post(&url).bearer_auth(foreign).body(body.clone()).send().await?.status(), 401);
    assert_eq!(app.post(path, &ServiceClaims::Service, body.clone()).await?.status(), 401);
    assert_eq!(app.post(path, &app.claims(Scope::Tickets), body).await?.status(), 403);
    let id = app.import(&conversation("T-1")).await?;
    let ticket = format!("/internal/v1/tickets/{id}");
    assert_eq!(app.get(&ticket, &app.claims(Scope::Assess)).await?.status(), 403);
    assert_eq!(app.get(&ticket, &ServiceClaims::Service).await?.status(), 401);
    Ok(())
}
