//! Identities of conversations. Receipts, tickets and namespaces: `tests/e2e/scenarios`, on both databases.

use anyhow::Result;
use serde_json::{Value, json};

use assay_testkit::on_both_databases;

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    duplicate_import_is_refused_with_the_first_ticket_id,
    identities_of_maximum_length_differ_by_their_last_character,
    refused_import_claims_no_identity,
} }

async fn duplicate_import_is_refused_with_the_first_ticket_id(app: TestApp) -> Result<()> {
    let first = app.accepted(&conversation("T-1")).await?;
    let mut again = conversation("T-1");
    again["subject"] = "changed".into();
    let response = app.submit(&again).await?;
    assert_eq!(response.status(), 409);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await?;
    assert_eq!((&problem["code"], &problem["ticket_id"]), (&json!("duplicate-import"), &json!(first)));
    let ticket: Value = app.ticket(&first).await?.json().await?;
    assert_eq!(ticket["subject"], "", "the first import stays as it is");
    Ok(())
}

async fn identities_of_maximum_length_differ_by_their_last_character(app: TestApp) -> Result<()> {
    let longest = "🦀".repeat(1_023);
    for last in ["a", "b"] {
        let mut body = conversation(&format!("{longest}{last}"));
        body["source_account_id"] = format!("{longest}c").into();
        app.accepted(&body).await?;
        assert_eq!(app.submit(&body).await?.status(), 409);
    }
    Ok(())
}

async fn refused_import_claims_no_identity(app: TestApp) -> Result<()> {
    let mut invalid = conversation("T-1");
    invalid["messages"][0]["content"] = "".into();
    assert_eq!(app.submit(&invalid).await?.status(), 400);
    let mut unknown_agent = conversation("T-1");
    unknown_agent["messages"][0]["author"] = json!({"type": "ai", "external_id": "unknown"});
    assert_eq!(app.submit(&unknown_agent).await?.status(), 404);
    app.accepted(&conversation("T-1")).await?;
    Ok(())
}
