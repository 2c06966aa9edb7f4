//! Identities of conversations, and `Idempotency-Key` on imports. Receipts, duplicates, replays and conflicts:
//! `tests/e2e/scenarios`.

use std::collections::HashSet;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::Value;

use assay_testkit::{eventually, execute_on, on_both_databases, texts_on};

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    identities_of_maximum_length_differ_by_their_last_character,
    duplicate_import_releases_its_key,
    concurrent_equal_requests_with_a_key_get_one_receipt,
    concurrent_requests_reusing_a_key_are_accepted_once,
    concurrent_duplicates_reusing_a_key_are_all_answered,
    key_expires_after_24_hours,
    maintenance_removes_only_expired_keys,
} }

async fn identities_of_maximum_length_differ_by_their_last_character(app: TestApp) -> Result<()> {
    let longest = "🦀".repeat(1_023);
    for last in ["a", "b"] {
        let mut body = conversation(&format!("{longest}{last}"));
        body["source_account_id"] = format!("{longest}c").into();
        app.import(&body).await?;
        assert_eq!(app.submit(&body).await?.status(), 409);
    }
    Ok(())
}

async fn duplicate_import_releases_its_key(app: TestApp) -> Result<()> {
    app.import(&conversation("T-1")).await?;
    assert_eq!(app.submit_with_key("key-1", &conversation("T-1")).await?.status(), 409);
    assert_eq!(app.submit_with_key("key-1", &conversation("T-2")).await?.status(), 202);
    Ok(())
}

async fn concurrent_equal_requests_with_a_key_get_one_receipt(mut app: TestApp) -> Result<()> {
    let addresses = [app.address.clone(), app.start_replica()?];
    let body = conversation("T-1").to_string();
    let answers = try_join_all((0..50).map(|number| {
        let (app, address, body) = (&app, &addresses[number % 2], body.clone());
        async move {
            let response = app.submit_to(address, app.organization, Some("key-1"), body).await?;
            anyhow::Ok((response.status().as_u16(), response.text().await?))
        }
    }))
    .await?;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 202), "{answers:?}");
    Ok(())
}

async fn concurrent_requests_reusing_a_key_are_accepted_once(app: TestApp) -> Result<()> {
    let bodies: Vec<Value> = (0..30).map(|number| conversation(&format!("T-{number}"))).collect();
    let statuses = try_join_all(
        bodies
            .iter()
            .map(|body| async { anyhow::Ok(app.submit_with_key("key-1", body).await?.status().as_u16()) }),
    )
    .await?;
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1);
    assert_eq!(statuses.iter().collect::<HashSet<_>>(), HashSet::from([&202, &422]));
    Ok(())
}

/// A refused request releases its key, so each repeated request is written separately.
async fn concurrent_duplicates_reusing_a_key_are_all_answered(app: TestApp) -> Result<()> {
    let bodies: Vec<Value> = (0..20).map(|number| conversation(&format!("T-{number}"))).collect();
    let mut expected = Vec::new();
    for body in &bodies {
        expected.push((409, Value::from(app.import(body).await?)));
    }
    let answers = try_join_all(bodies.iter().map(|body| async {
        let response = app.submit_with_key("key-1", body).await?;
        let status = response.status().as_u16();
        anyhow::Ok((status, response.json::<Value>().await?["ticket_id"].clone()))
    }))
    .await?;
    assert_eq!(answers, expected);
    Ok(())
}

const AGE_BY_24_HOURS: &str = "UPDATE idempotency_keys SET created_at = created_at - 24 * 60 * 60 * 1000";

async fn key_expires_after_24_hours(app: TestApp) -> Result<()> {
    app.submit_with_key("key-1", &conversation("T-1")).await?.error_for_status()?;
    execute_on(&app.database, AGE_BY_24_HOURS).await?;
    assert_eq!(app.submit_with_key("key-1", &conversation("T-2")).await?.status(), 202);
    assert_eq!(app.submit_with_key("key-1", &conversation("T-1")).await?.status(), 422);
    Ok(())
}

async fn maintenance_removes_only_expired_keys(mut app: TestApp) -> Result<()> {
    app.submit_with_key("old", &conversation("T-1")).await?.error_for_status()?;
    execute_on(&app.database, AGE_BY_24_HOURS).await?;
    app.submit_with_key("new", &conversation("T-2")).await?.error_for_status()?;
    // Every instance runs maintenance when it starts.
    app.start_replica()?;
    let only_new_is_left = || async {
        Ok(texts_on(&app.database, "SELECT key AS value FROM idempotency_keys").await? == ["new"])
    };
    eventually("the expired key to be removed", only_new_is_left).await
}
