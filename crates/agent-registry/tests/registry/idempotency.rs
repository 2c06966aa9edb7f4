//! `Idempotency-Key` on the creation of agents.

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use assay_testkit::on_both_databases;

use crate::test_app::TestApp;

on_both_databases! { TestApp {
    repeated_request_gets_first_response_byte_for_byte,
    reused_key_with_other_body_is_refused,
    refused_request_does_not_use_up_its_key,
    idempotency_keys_are_scoped_to_organization,
    concurrent_equal_requests_share_one_effect,
} }

const BODY: &str = r#"{"external_id":"bot","name":"Bot"}"#;

async fn repeated_request_gets_first_response_byte_for_byte(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    let first = app.create_agent_idempotently(&credentials, "key-1", BODY).await?;
    let again = app.create_agent_idempotently(&credentials, "key-1", BODY).await?;
    assert_eq!((first.status().as_u16(), again.status().as_u16()), (201, 201));
    for header in ["location", "content-type"] {
        assert_eq!(first.headers()[header], again.headers()[header]);
    }
    assert_eq!(first.bytes().await?, again.bytes().await?);
    Ok(())
}

async fn reused_key_with_other_body_is_refused(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    app.create_agent_idempotently(&credentials, "key-1", BODY).await?.error_for_status()?;
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    let response = app.create_agent_idempotently(&credentials, "key-1", other).await?;
    assert_eq!(response.status(), 422);
    assert_eq!(response.json::<Value>().await?["code"], "idempotency-conflict");
    assert_eq!(
        app.create_agent(&credentials, other).await?.status(),
        201,
        "the refused request had no effect"
    );
    Ok(())
}

async fn refused_request_does_not_use_up_its_key(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    app.create_agent(&credentials, BODY).await?.error_for_status()?;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", BODY).await?.status(), 409);
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", other).await?.status(), 201);
    Ok(())
}

async fn idempotency_keys_are_scoped_to_organization(app: TestApp) -> Result<()> {
    let (one, other) = (app.new_credentials().await?, app.new_credentials().await?);
    assert_eq!(app.create_agent_idempotently(&one, "key-1", BODY).await?.status(), 201);
    let body = json!({"external_id": "another", "name": "Bot"}).to_string();
    assert_eq!(app.create_agent_idempotently(&other, "key-1", &body).await?.status(), 201);
    Ok(())
}

async fn concurrent_equal_requests_share_one_effect(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    let requests = (0..12).map(|_| async {
        let response = app.create_agent_idempotently(&credentials, "key-1", BODY).await?;
        anyhow::Ok((response.status().as_u16(), response.text().await?))
    });
    let answers = try_join_all(requests).await?;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 201), "{answers:?}");
    assert_eq!(app.create_agent(&credentials, BODY).await?.status(), 409);
    Ok(())
}

#[tokio::test]
async fn malformed_idempotency_key_is_refused() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    for key in ["", "with space", &"k".repeat(256)] {
        let response = app.create_agent_idempotently(&credentials, key, BODY).await?;
        assert_eq!(response.status(), 400, "{key:?}");
        let problem: Value = response.json().await?;
        assert_eq!(problem["errors"][0]["pointer"], "Idempotency-Key", "{key:?}");
    }
    assert_eq!(app.create_agent_idempotently(&credentials, &"k".repeat(255), BODY).await?.status(), 201);
    Ok(())
}
