//! AI authors: resolved by agent-registry, with a cache.

use anyhow::Result;
use assay_platform::runtime::new_id;
use serde_json::{Value, json};

use crate::test_app::{TestApp, conversation, conversation_of, message};

#[tokio::test]
async fn cached_agent_is_not_fetched_again() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    app.import(&conversation("T-0")).await?;
    assert_eq!(app.registry.agent_calls(), 0, "a conversation without AI authors needs no call");
    let agent = app.registry.register(app.organization, "bot")?;
    app.import(&by_agent("T-1", "bot")).await?;
    app.registry.set_unavailable(true);
    app.import(&by_agent("T-2", "bot")).await?;
    let by_id = json!([message("1", 1, json!({"type": "ai", "id": agent.id}))]);
    app.import(&conversation_of("T-3", by_id)).await?;
    assert_eq!(app.registry.agent_calls(), 1);
    Ok(())
}

#[tokio::test]
async fn agents_are_cached_per_organization() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    app.registry.register(app.organization, "bot")?;
    app.import(&by_agent("T-1", "bot")).await?;
    let body = by_agent("T-1", "bot").to_string();
    let response = app.submit_to(&app.address, new_id(), None, body).await?;
    assert_eq!(response.status(), 404);
    Ok(())
}

#[tokio::test]
async fn registry_outage_answers_503_for_agents_that_are_not_cached() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    app.registry.register(app.organization, "bot")?;
    app.registry.set_unavailable(true);
    let response = app.submit(&by_agent("T-1", "bot")).await?;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    app.registry.set_unavailable(false);
    app.import(&by_agent("T-1", "bot")).await?;
    Ok(())
}

fn by_agent(ticket_id: &str, external_id: &str) -> Value {
    conversation_of(ticket_id, json!([message("1", 1, json!({"type": "ai", "external_id": external_id}))]))
}
