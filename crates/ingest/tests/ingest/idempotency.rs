//! `Idempotency-Key` on imports.

use std::collections::HashSet;

use anyhow::Result;
use assay_platform::runtime::new_id;
use futures_util::future::try_join_all;
use serde_json::Value;

use assay_testkit::{eventually, on_both_databases};

use crate::stage::{Stage, conversation, execute, query};

on_both_databases! { Stage {
    the_same_request_gets_the_first_receipt_byte_for_byte,
    the_same_key_with_another_body_is_refused,
    a_duplicate_leaves_its_key_free,
    keys_of_different_organizations_have_nothing_to_do_with_each_other,
    of_many_equal_requests_at_once_all_get_the_one_receipt,
    of_many_requests_with_one_key_and_different_bodies_one_is_accepted,
    of_many_duplicates_with_one_key_none_is_lost,
    a_key_is_free_again_after_24_hours,
    expired_keys_are_removed_and_others_stay,
} }

async fn the_same_request_gets_the_first_receipt_byte_for_byte(stage: Stage) -> Result<()> {
    let first = stage.submit_with_key("key-1", &conversation("T-1")).await?;
    let again = stage.submit_with_key("key-1", &conversation("T-1")).await?;
    assert_eq!((first.status().as_u16(), again.status().as_u16()), (202, 202));
    for header in ["location", "content-type"] {
        assert_eq!(first.headers()[header], again.headers()[header]);
    }
    assert_eq!(first.bytes().await?, again.bytes().await?);
    assert_eq!(stage.submit(&conversation("T-1")).await?.status(), 409, "without the key it is a duplicate");
    Ok(())
}

async fn the_same_key_with_another_body_is_refused(stage: Stage) -> Result<()> {
    stage.submit_with_key("key-1", &conversation("T-1")).await?.error_for_status()?;
    let response = stage.submit_with_key("key-1", &conversation("T-2")).await?;
    assert_eq!(response.status(), 422);
    assert_eq!(response.json::<Value>().await?["code"], "idempotency-conflict");
    stage.accepted(&conversation("T-2")).await?;
    Ok(())
}

async fn a_duplicate_leaves_its_key_free(stage: Stage) -> Result<()> {
    stage.accepted(&conversation("T-1")).await?;
    assert_eq!(stage.submit_with_key("key-1", &conversation("T-1")).await?.status(), 409);
    assert_eq!(stage.submit_with_key("key-1", &conversation("T-2")).await?.status(), 202);
    Ok(())
}

async fn keys_of_different_organizations_have_nothing_to_do_with_each_other(stage: Stage) -> Result<()> {
    assert_eq!(stage.submit_with_key("key-1", &conversation("T-1")).await?.status(), 202);
    let body = conversation("T-2").to_string();
    let response = stage.submit_to(&stage.address, new_id(), Some("key-1"), body).await?;
    assert_eq!(response.status(), 202);
    Ok(())
}

async fn of_many_equal_requests_at_once_all_get_the_one_receipt(mut stage: Stage) -> Result<()> {
    let addresses = [stage.address.clone(), stage.start_replica()?];
    let body = conversation("T-1").to_string();
    let answers = try_join_all((0..50).map(|number| {
        let (stage, address, body) = (&stage, &addresses[number % 2], body.clone());
        async move {
            let response = stage.submit_to(address, stage.organization, Some("key-1"), body).await?;
            anyhow::Ok((response.status().as_u16(), response.text().await?))
        }
    }))
    .await?;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 202), "{answers:?}");
    Ok(())
}

async fn of_many_requests_with_one_key_and_different_bodies_one_is_accepted(stage: Stage) -> Result<()> {
    let bodies: Vec<Value> = (0..30).map(|number| conversation(&format!("T-{number}"))).collect();
    let statuses = try_join_all(
        bodies
            .iter()
            .map(|body| async { anyhow::Ok(stage.submit_with_key("key-1", body).await?.status().as_u16()) }),
    )
    .await?;
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1);
    assert_eq!(statuses.iter().collect::<HashSet<_>>(), HashSet::from([&202, &422]));
    Ok(())
}

/// A refused request does not hold its key, so each of the others behind it must be looked at for itself.
async fn of_many_duplicates_with_one_key_none_is_lost(stage: Stage) -> Result<()> {
    let bodies: Vec<Value> = (0..20).map(|number| conversation(&format!("T-{number}"))).collect();
    let mut expected = Vec::new();
    for body in &bodies {
        expected.push((409, Value::from(stage.accepted(body).await?)));
    }
    let answers = try_join_all(bodies.iter().map(|body| async {
        let response = stage.submit_with_key("key-1", body).await?;
        let status = response.status().as_u16();
        anyhow::Ok((status, response.json::<Value>().await?["ticket_id"].clone()))
    }))
    .await?;
    assert_eq!(answers, expected);
    Ok(())
}

const AGE_BY_24_HOURS: &str = "UPDATE idempotency_keys SET created_at = created_at - 24 * 60 * 60 * 1000";

async fn a_key_is_free_again_after_24_hours(stage: Stage) -> Result<()> {
    stage.submit_with_key("key-1", &conversation("T-1")).await?.error_for_status()?;
    execute(&stage.database, AGE_BY_24_HOURS).await?;
    assert_eq!(stage.submit_with_key("key-1", &conversation("T-2")).await?.status(), 202);
    assert_eq!(stage.submit_with_key("key-1", &conversation("T-1")).await?.status(), 422);
    Ok(())
}

async fn expired_keys_are_removed_and_others_stay(mut stage: Stage) -> Result<()> {
    stage.submit_with_key("old", &conversation("T-1")).await?.error_for_status()?;
    execute(&stage.database, AGE_BY_24_HOURS).await?;
    stage.submit_with_key("new", &conversation("T-2")).await?.error_for_status()?;
    // Every instance cleans up when it starts.
    stage.start_replica()?;
    let only_new_is_left = || async {
        Ok(query(&stage.database, "SELECT key AS value FROM idempotency_keys").await? == ["new"])
    };
    eventually("the expired key to be removed", only_new_is_left).await
}

#[tokio::test]
async fn a_key_that_is_no_key_is_refused() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    for key in ["", "with space", &"k".repeat(256)] {
        let response = stage.submit_with_key(key, &conversation("T-1")).await?;
        assert_eq!(response.status(), 400, "{key:?}");
        let problem: Value = response.json().await?;
        assert_eq!(problem["errors"][0]["pointer"], "Idempotency-Key", "{key:?}");
    }
    Ok(())
}
