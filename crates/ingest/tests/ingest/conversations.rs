//! Accepting conversations and reading their tickets.

use anyhow::Result;
use assay_contracts::tenant::Scope;
use assay_platform::runtime::{new_id, now};
use serde_json::{Value, json};

use assay_testkit::on_both_databases;

use crate::stage::{Stage, claims_for, conversation};

on_both_databases! { Stage {
    an_accepted_import_is_answered_with_its_receipt_and_can_be_read_at_once,
    a_second_import_is_refused_with_the_first_ticket_id,
    accounts_and_sources_are_disjoint_namespaces,
    organizations_do_not_see_each_other,
    identities_of_the_greatest_length_are_told_apart_by_their_last_character,
    a_refused_import_claims_nothing,
} }

async fn an_accepted_import_is_answered_with_its_receipt_and_can_be_read_at_once(stage: Stage) -> Result<()> {
    let before = now().as_millis();
    let mut body = conversation("T-1");
    body["subject"] = "Wo ist mein Paket? 📦".into();
    let response = stage.submit(&body).await?;
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str()?.to_owned();
    let receipt: Value = response.json().await?;
    let id = receipt["id"].as_str().unwrap_or_default().to_owned();
    assert_eq!(location, format!("/v1/tickets/{id}"));
    let expected = json!({"id": id, "external_ticket_id": "T-1", "source": "custom", "status": "accepted"});
    assert_eq!(receipt, expected);

    let ticket: Value = stage.ticket(&id).await?.error_for_status()?.json().await?;
    let created_at = ticket["created_at"].as_i64().unwrap_or_default();
    assert!((before..=now().as_millis()).contains(&created_at), "{ticket}");
    let expected =
        json!({"id": id, "external_id": "T-1", "subject": "Wo ist mein Paket? 📦", "created_at": created_at});
    assert_eq!(ticket, expected);

    let without_subject = stage.accepted(&conversation("T-2")).await?;
    let ticket: Value = stage.ticket(&without_subject).await?.json().await?;
    assert_eq!(ticket["subject"], "");
    Ok(())
}

async fn a_second_import_is_refused_with_the_first_ticket_id(stage: Stage) -> Result<()> {
    let first = stage.accepted(&conversation("T-1")).await?;
    let mut again = conversation("T-1");
    again["subject"] = "changed".into();
    let response = stage.submit(&again).await?;
    assert_eq!(response.status(), 409);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await?;
    assert_eq!((&problem["code"], &problem["ticket_id"]), (&json!("duplicate-import"), &json!(first)));
    let ticket: Value = stage.ticket(&first).await?.json().await?;
    assert_eq!(ticket["subject"], "", "the first import stays as it is");
    Ok(())
}

async fn accounts_and_sources_are_disjoint_namespaces(stage: Stage) -> Result<()> {
    // The source, the account, and whether it is a new identity after those above it.
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
        let response = stage.submit(&body).await?;
        assert_eq!(response.status(), if is_new { 202 } else { 409 }, "{source:?} {account:?}");
        if is_new {
            let receipt: Value = response.json().await?;
            assert_eq!(receipt["source"], source.unwrap_or("custom"));
        }
    }
    Ok(())
}

async fn organizations_do_not_see_each_other(stage: Stage) -> Result<()> {
    let ours = stage.accepted(&conversation("T-1")).await?;
    let other = new_id();
    let response = stage.submit_to(&stage.address, other, None, conversation("T-1").to_string()).await?;
    assert_eq!(response.status(), 202);
    let theirs: Value = response.json().await?;
    assert_ne!(theirs["id"], json!(ours));
    let path = format!("/internal/v1/tickets/{ours}");
    let response = stage.get(&path, &claims_for(other, Scope::Tickets)).await?;
    assert_eq!(response.status(), 404);
    Ok(())
}

async fn identities_of_the_greatest_length_are_told_apart_by_their_last_character(
    stage: Stage,
) -> Result<()> {
    let longest = "🦀".repeat(1_023);
    for last in ["a", "b"] {
        let mut body = conversation(&format!("{longest}{last}"));
        body["source_account_id"] = format!("{longest}c").into();
        stage.accepted(&body).await?;
        assert_eq!(stage.submit(&body).await?.status(), 409);
    }
    Ok(())
}

async fn a_refused_import_claims_nothing(stage: Stage) -> Result<()> {
    let mut faulty = conversation("T-1");
    faulty["messages"][0]["content"] = "".into();
    assert_eq!(stage.submit(&faulty).await?.status(), 400);
    let mut unknown_agent = conversation("T-1");
    unknown_agent["messages"][0]["author"] = json!({"type": "ai", "external_id": "nobody"});
    assert_eq!(stage.submit(&unknown_agent).await?.status(), 404);
    stage.accepted(&conversation("T-1")).await?;
    Ok(())
}
