//! AI authors: resolved by agent-registry, remembered here.

use anyhow::Result;
use assay_platform::runtime::new_id;
use serde_json::{Value, json};

use crate::stage::{Stage, conversation, conversation_of, message};

#[tokio::test]
async fn an_unknown_agent_is_refused_and_pointed_at() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let agent = stage.registry.register(stage.organization, "bot")?;
    let foreign = stage.registry.register(new_id(), "foreign")?;
    let messages = json!([
        message("1", 1, json!({"type": "contact", "external_id": "c"})),
        message("2", 2, json!({"type": "ai", "external_id": "bot"})),
        message("3", 3, json!({"type": "ai", "external_id": "foreign"})),
        message("4", 4, json!({"type": "ai", "id": foreign.id})),
        message("5", 5, json!({"type": "ai", "id": "no UUID"})),
        message("6", 6, json!({"type": "ai", "id": agent.id, "external_id": "nobody"})),
    ]);
    let response = stage.submit(&conversation_of("T-1", messages)).await?;
    assert_eq!(response.status(), 404);
    let problem: Value = response.json().await?;
    assert_eq!(problem["code"], "unknown-agent");
    let expected = [
        "/messages/2/author/external_id",
        "/messages/3/author/id",
        "/messages/4/author/id",
        "/messages/5/author/external_id",
    ];
    assert_eq!(pointers(&problem), expected);
    Ok(())
}

#[tokio::test]
async fn ids_of_two_agents_do_not_belong_together() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let one = stage.registry.register(stage.organization, "one")?;
    stage.registry.register(stage.organization, "two")?;
    let messages = json!([
        message("1", 1, json!({"type": "ai", "id": one.id, "external_id": "one"})),
        message("2", 2, json!({"type": "ai", "id": one.id, "external_id": "two"})),
    ]);
    let response = stage.submit(&conversation_of("T-1", messages)).await?;
    assert_eq!(response.status(), 400);
    let problem: Value = response.json().await?;
    assert_eq!(problem["code"], "agent-mismatch");
    assert_eq!(pointers(&problem), ["/messages/1/author"]);
    Ok(())
}

#[tokio::test]
async fn an_agent_is_usable_as_soon_as_it_is_registered() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let body = by_agent("T-1", "bot");
    assert_eq!(stage.submit(&body).await?.status(), 404);
    stage.registry.register(stage.organization, "bot")?;
    assert_eq!(stage.submit(&body).await?.status(), 202);
    Ok(())
}

#[tokio::test]
async fn a_known_agent_is_not_asked_for_again() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    stage.accepted(&conversation("T-0")).await?;
    assert_eq!(stage.registry.calls(), 0, "a conversation without AI authors asks nobody");
    let agent = stage.registry.register(stage.organization, "bot")?;
    stage.accepted(&by_agent("T-1", "bot")).await?;
    stage.registry.set_away(true);
    stage.accepted(&by_agent("T-2", "bot")).await?;
    let by_id = json!([message("1", 1, json!({"type": "ai", "id": agent.id}))]);
    stage.accepted(&conversation_of("T-3", by_id)).await?;
    assert_eq!(stage.registry.calls(), 1);
    Ok(())
}

#[tokio::test]
async fn agents_are_remembered_for_their_organization_only() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    stage.registry.register(stage.organization, "bot")?;
    stage.accepted(&by_agent("T-1", "bot")).await?;
    let body = by_agent("T-1", "bot").to_string();
    let response = stage.submit_to(&stage.address, new_id(), None, body).await?;
    assert_eq!(response.status(), 404);
    Ok(())
}

#[tokio::test]
async fn without_the_registry_an_unknown_agent_is_neither_accepted_nor_refused_for_good() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    stage.registry.register(stage.organization, "bot")?;
    stage.registry.set_away(true);
    let response = stage.submit(&by_agent("T-1", "bot")).await?;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    stage.registry.set_away(false);
    stage.accepted(&by_agent("T-1", "bot")).await?;
    Ok(())
}

fn by_agent(ticket_id: &str, external_id: &str) -> Value {
    conversation_of(ticket_id, json!([message("1", 1, json!({"type": "ai", "external_id": external_id}))]))
}

fn pointers(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    errors.iter().filter_map(|error| error["pointer"].as_str()).collect()
}
