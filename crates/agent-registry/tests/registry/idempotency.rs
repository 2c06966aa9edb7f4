//! `Idempotency-Key` on the creation of agents.

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use assay_testkit::on_both_databases;

use crate::stage::Stage;

on_both_databases! { Stage {
    the_same_request_gets_the_first_answer_byte_for_byte,
    the_same_key_with_another_body_is_refused,
    a_refused_request_leaves_its_key_free,
    keys_of_different_organizations_have_nothing_to_do_with_each_other,
    of_many_equal_requests_at_once_one_has_an_effect_and_all_get_its_answer,
} }

const BODY: &str = r#"{"external_id":"bot","name":"Bot"}"#;

async fn the_same_request_gets_the_first_answer_byte_for_byte(stage: Stage) -> Result<()> {
    let member = stage.member().await?;
    let first = stage.create_agent_with_key(&member, "key-1", BODY).await?;
    let again = stage.create_agent_with_key(&member, "key-1", BODY).await?;
    assert_eq!((first.status().as_u16(), again.status().as_u16()), (201, 201));
    for header in ["location", "content-type"] {
        assert_eq!(first.headers()[header], again.headers()[header]);
    }
    assert_eq!(first.bytes().await?, again.bytes().await?);
    Ok(())
}

async fn the_same_key_with_another_body_is_refused(stage: Stage) -> Result<()> {
    let member = stage.member().await?;
    stage.create_agent_with_key(&member, "key-1", BODY).await?.error_for_status()?;
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    let response = stage.create_agent_with_key(&member, "key-1", other).await?;
    assert_eq!(response.status(), 422);
    assert_eq!(response.json::<Value>().await?["code"], "idempotency-conflict");
    assert_eq!(stage.create_agent(&member, other).await?.status(), 201, "the refused request had no effect");
    Ok(())
}

async fn a_refused_request_leaves_its_key_free(stage: Stage) -> Result<()> {
    let member = stage.member().await?;
    stage.create_agent(&member, BODY).await?.error_for_status()?;
    assert_eq!(stage.create_agent_with_key(&member, "key-1", BODY).await?.status(), 409);
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    assert_eq!(stage.create_agent_with_key(&member, "key-1", other).await?.status(), 201);
    Ok(())
}

async fn keys_of_different_organizations_have_nothing_to_do_with_each_other(stage: Stage) -> Result<()> {
    let (one, other) = (stage.member().await?, stage.member().await?);
    assert_eq!(stage.create_agent_with_key(&one, "key-1", BODY).await?.status(), 201);
    let body = json!({"external_id": "another", "name": "Bot"}).to_string();
    assert_eq!(stage.create_agent_with_key(&other, "key-1", &body).await?.status(), 201);
    Ok(())
}

async fn of_many_equal_requests_at_once_one_has_an_effect_and_all_get_its_answer(stage: Stage) -> Result<()> {
    let member = stage.member().await?;
    let requests = (0..12).map(|_| async {
        let response = stage.create_agent_with_key(&member, "key-1", BODY).await?;
        anyhow::Ok((response.status().as_u16(), response.text().await?))
    });
    let answers = try_join_all(requests).await?;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 201), "{answers:?}");
    assert_eq!(stage.create_agent(&member, BODY).await?.status(), 409);
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_no_key_is_refused() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let member = stage.member().await?;
    for key in ["", "with space", &"k".repeat(256)] {
        let response = stage.create_agent_with_key(&member, key, BODY).await?;
        assert_eq!(response.status(), 400, "{key:?}");
        let problem: Value = response.json().await?;
        assert_eq!(problem["errors"][0]["pointer"], "Idempotency-Key", "{key:?}");
    }
    assert_eq!(stage.create_agent_with_key(&member, &"k".repeat(255), BODY).await?.status(), 201);
    Ok(())
}
