//! `Idempotency-Key` on the creation of agents. Replays, conflicts and invalid keys: `tests/e2e/scenarios/idempotency.rs`.

use anyhow::Result;

use assay_testkit::on_both_databases;

use crate::test_app::TestApp;

on_both_databases! { TestApp {
    refused_request_does_not_use_up_its_key,
} }

async fn refused_request_does_not_use_up_its_key(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    let body = r#"{"external_id":"bot","name":"Bot"}"#;
    app.create_agent(&credentials, body).await?.error_for_status()?;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", body).await?.status(), 409);
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", other).await?.status(), 201);
    Ok(())
}
