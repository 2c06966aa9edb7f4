//! Accepting conversations and reading their tickets.

use anyhow::Result;
use assay_contracts::tenant::Scope;
use assay_platform::runtime::{new_id, now};
use serde_json::{Value, json};

use assay_testkit::on_both_databases;

use crate::test_app::{TestApp, claims_for, conversation};

on_both_databases! { TestApp {
    accepted_import_returns_a_receipt_and_is_readable_at_once,
    duplicate_import_is_refused_with_the_first_ticket_id,
    accounts_and_sources_are_disjoint_namespaces,
    tickets_are_isolated_by_organization,
    identities_of_maximum_length_differ_by_their_last_character,
    refused_import_claims_no_identity,
} }

async fn accepted_import_returns_a_receipt_and_is_readable_at_once(app: TestApp) -> Result<()> {
    let before = now().as_millis();
    let mut body = conversation("T-1");
    body["subject"] = "Wo ist mein Paket? 📦".into();
    let response = app.submit(&body).await?;
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str()?.to_owned();
    let receipt: Value = response.json().await?;
    let id = receipt["id"].as_str().unwrap_or_default().to_owned();
    assert_eq!(location, format!("/v1/tickets/{id}"));
    let expected = json!({"id": id, "external_ticket_id": "T-1", "source": "custom", "status": "accepted"});
    assert_eq!(receipt, expected);

    let ticket: Value = app.ticket(&id).await?.error_for_status()?.json().await?;
    let created_at = ticket["created_at"].as_i64().unwrap_or_default();
    assert!((before..=now().as_millis()).contains(&created_at), "{ticket}");
    let expected =
        json!({"id": id, "external_id": "T-1", "subject": "Wo ist mein Paket? 📦", "created_at": created_at});
    assert_eq!(ticket, expected);

    let without_subject = app.accepted(&conversation("T-2")).await?;
    let ticket: Value = app.ticket(&without_subject).await?.json().await?;
    assert_eq!(ticket["subject"], "");
    Ok(())
}

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

async fn accounts_and_sources_are_disjoint_namespaces(app: TestApp) -> Result<()> {
    // Source, account, and whether the identity is new after the cases above.
    let cases = [
        (None, None, true),
        (Some("custom"), None, false),
        (Some("zendesk"), None, true),
        (Some("Zendesk"), None, true),
        (None, Some("zendesk"), true),
        (Some("zendesk"), Some("zendesk"), false),
        (Some("intercom"), Some("zendesk"), false),
        (Some("zendesk"), Some("custom"), true),
    ];
    for (source, account, is_new) in cases {
        let mut body = conversation("T-1");
        if let Some(source) = source {
            body["source"] = source.into();
        }
        if let Some(account) = account {
            body["source_account_id"] = account.into();
        }
        let response = app.submit(&body).await?;
        assert_eq!(response.status(), if is_new { 202 } else { 409 }, "{source:?} {account:?}");
        if is_new {
            let receipt: Value = response.json().await?;
            assert_eq!(receipt["source"], source.unwrap_or("custom"));
        }
    }
    Ok(())
}

async fn tickets_are_isolated_by_organization(app: TestApp) -> Result<()> {
    let ours = app.accepted(&conversation("T-1")).await?;
    let other = new_id();
    let response = app.submit_to(&app.address, other, None, conversation("T-1").to_string()).await?;
    assert_eq!(response.status(), 202);
    let theirs: Value = response.json().await?;
    assert_ne!(theirs["id"], json!(ours));
    let path = format!("/internal/v1/tickets/{ours}");
    let response = app.get(&path, &claims_for(other, Scope::Tickets)).await?;
    assert_eq!(response.status(), 404);
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
