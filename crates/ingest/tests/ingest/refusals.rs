//! Requests that are refused before anything is written.

use anyhow::Result;
use assay_contracts::tenant::Scope;
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::{new_id, now};
use serde_json::{Value, json};

use crate::stage::{Stage, conversation};

#[tokio::test]
async fn every_fault_of_a_body_is_named() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let mut faulty = conversation("T-1");
    faulty["source"] = "".into();
    faulty["messages"][0]["author"] = json!({"type": "robot"});
    faulty["messages"][0]["timestamp"] = json!(-1);
    let cases = [
        (
            faulty.to_string(),
            "invalid-request",
            vec!["/source", "/messages/0/timestamp", "/messages/0/author/type"],
        ),
        (r#"{"messages":[]}"#.to_owned(), "invalid-request", vec!["/ticket_id", "/messages"]),
        ("[]".to_owned(), "invalid-request", vec![""]),
        (String::new(), "malformed-json", vec![]),
        (r#"{"ticket_id":"\ud800"}"#.to_owned(), "malformed-json", vec![]),
    ];
    for (body, code, pointers) in cases {
        let response = stage.submit_to(&stage.address, stage.organization, None, body.clone()).await?;
        assert_eq!(response.status(), 400, "{body}");
        let problem: Value = response.json().await?;
        assert_eq!(problem["code"], code, "{body}");
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
        assert_eq!(found, pointers, "{body}");
    }
    Ok(())
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_json_is_refused() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let mut large = conversation("T-1");
    large["messages"][0]["content"] = "x".repeat(stage.config.max_body_bytes).into();
    assert_eq!(stage.submit(&large).await?.status(), 413);
    let token = stage.tokens.issue(Audience::Ingest, &stage.claims(Scope::Assess), now())?;
    let request = stage.http.post(format!("{}/internal/v1/conversations", stage.address)).bearer_auth(token);
    let request = request.header("content-type", "text/csv").body(conversation("T-1").to_string());
    assert_eq!(request.send().await?.status(), 415);
    Ok(())
}

#[tokio::test]
async fn a_call_needs_a_token_of_the_right_kind_and_scope() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let path = "/internal/v1/conversations";
    let body = conversation("T-1").to_string();
    let url = format!("{}{path}", stage.address);
    assert_eq!(stage.http.post(&url).body(body.clone()).send().await?.status(), 401);
    let foreign = stage.tokens.issue(Audience::AgentRegistry, &stage.claims(Scope::Assess), now())?;
    assert_eq!(stage.http.post(&url).bearer_auth(foreign).body(body.clone()).send().await?.status(), 401);
    assert_eq!(stage.post(path, &ServiceClaims::Service, body.clone()).await?.status(), 401);
    assert_eq!(stage.post(path, &stage.claims(Scope::Tickets), body).await?.status(), 403);
    let id = stage.accepted(&conversation("T-1")).await?;
    let ticket = format!("/internal/v1/tickets/{id}");
    assert_eq!(stage.get(&ticket, &stage.claims(Scope::Assess)).await?.status(), 403);
    assert_eq!(stage.get(&ticket, &ServiceClaims::Service).await?.status(), 401);
    Ok(())
}

#[tokio::test]
async fn an_id_that_is_nobodys_is_not_found() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let id = stage.accepted(&conversation("T-1")).await?;
    let unknown: uuid::Uuid = new_id();
    for id in [unknown.to_string(), id.to_uppercase(), id.replace('-', ""), "T-1".into(), "%00".into()] {
        let response = stage.ticket(&id).await?;
        assert_eq!(response.status(), 404, "{id}");
        assert_eq!(response.json::<Value>().await?["code"], "ticket-not-found", "{id}");
    }
    Ok(())
}

#[tokio::test]
async fn other_methods_are_refused_with_those_that_are_allowed() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let response = stage.get("/internal/v1/conversations", &stage.claims(Scope::Assess)).await?;
    assert_eq!((response.status().as_u16(), response.headers()["allow"].to_str()?), (405, "POST"));
    let ticket = format!("/internal/v1/tickets/{}", stage.accepted(&conversation("T-1")).await?);
    let response = stage.post(&ticket, &stage.claims(Scope::Tickets), String::new()).await?;
    assert_eq!((response.status().as_u16(), response.headers()["allow"].to_str()?), (405, "GET, DELETE"));
    Ok(())
}
