//! Registering and finding agents.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use assay_contracts::event::{AgentCreated, Event, Topic};
use assay_contracts::internal::{FindAgents, FoundAgents};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::{Phase, new_id, now};
use async_trait::async_trait;
use serde_json::{Value, json};

use assay_testkit::{eventually, on_both_databases};

use crate::test_app::{Credentials, TestApp, claims_of};

on_both_databases! { TestApp {
    longest_external_ids_differ_by_last_character,
    created_agent_is_published,
    agents_are_found_by_either_id_within_organization,
    refused_request_does_not_use_up_its_key,
} }

async fn longest_external_ids_differ_by_last_character(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    let longest = "🦀".repeat(1_023);
    for last in ["a", "b"] {
        let body = json!({"external_id": format!("{longest}{last}"), "name": "Bot"}).to_string();
        assert_eq!(app.create_agent(&credentials, &body).await?.status(), 201);
        assert_eq!(app.create_agent(&credentials, &body).await?.status(), 409);
    }
    let too_long = json!({"external_id": format!("{longest}ab"), "name": "Bot"}).to_string();
    assert_eq!(app.create_agent(&credentials, &too_long).await?.status(), 400);
    Ok(())
}

async fn created_agent_is_published(mut app: TestApp) -> Result<()> {
    let received: Arc<Mutex<Vec<AgentCreated>>> = Arc::default();
    let (bus, handler) = (app.bus.clone(), Arc::new(Listener(received.clone())));
    app.tasks.spawn(Phase::Consume, "listener", move |stop| async move {
        bus.consume(AGENT_CREATED, handler, stop).await
    });
    let credentials = app.new_credentials().await?;
    // The listener's queue exists from its first start: the event of an earlier agent may be missed.
    let number = std::sync::atomic::AtomicUsize::new(0);
    eventually("the event", || async {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let body = json!({"external_id": format!("bot-{number}"), "name": "Bot"}).to_string();
        app.create_agent(&credentials, &body).await?.error_for_status()?;
        Ok(received.lock().is_ok_and(|received| !received.is_empty()))
    })
    .await?;
    let event = received.lock().ok().and_then(|mut received| received.pop());
    let event = event.ok_or_else(|| anyhow::anyhow!("no event was received"))?;
    assert_eq!(event.organization_id, credentials.organization_id);
    assert_eq!(event.agent.name, "Bot");
    assert!(event.agent.external_id.starts_with("bot-"));
    Ok(())
}

async fn agents_are_found_by_either_id_within_organization(app: TestApp) -> Result<()> {
    let (one, other) = (app.new_credentials().await?, app.new_credentials().await?);
    let first = create(&app, &one, "first").await?;
    let second = create(&app, &one, "second").await?;
    create(&app, &other, "third").await?;

    let wanted = |ids: &[&str], external_ids: &[&str]| FindAgents {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        external_ids: external_ids.iter().map(|id| (*id).to_owned()).collect(),
    };
    assert_eq!(find(&app, &one, wanted(&[&first], &["second"])).await?, ["first", "second"]);
    assert_eq!(find(&app, &one, wanted(&[&first], &["first"])).await?, ["first"]);
    assert_eq!(find(&app, &one, wanted(&["no UUID", &second.to_uppercase()], &[])).await?, NONE);
    assert_eq!(find(&app, &one, wanted(&[], &["third", "FIRST", "unknown"])).await?, NONE);
    assert_eq!(find(&app, &other, wanted(&[&first, &second], &["third"])).await?, ["third"]);

    let too_many = FindAgents { ids: vec![first; 101], external_ids: Vec::new() };
    let claims = claims_of(&one, Scope::Assess);
    let response = app.post("/internal/v1/agents/find", &claims, serde_json::to_string(&too_many)?).await?;
    assert_eq!(response.status(), 400);
    Ok(())
}

/// Replays, conflicts and invalid keys: `tests/e2e/scenarios/idempotency.rs`.
async fn refused_request_does_not_use_up_its_key(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    let body = r#"{"external_id":"bot","name":"Bot"}"#;
    app.create_agent(&credentials, body).await?.error_for_status()?;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", body).await?.status(), 409);
    let other = r#"{"external_id":"bot-2","name":"Bot"}"#;
    assert_eq!(app.create_agent_idempotently(&credentials, "key-1", other).await?.status(), 201);
    Ok(())
}

#[tokio::test]
async fn every_validation_error_is_reported() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let cases = [
        ("{}", "invalid-request", vec!["/external_id", "/name"]),
        (
            r#"{"external_id":"","name":7,"type":"other"}"#,
            "invalid-request",
            vec!["/external_id", "/name", "/type"],
        ),
        (r#"{"external_id":"a\u0000","name":"Bot"}"#, "invalid-request", vec!["/external_id"]),
        ("[]", "invalid-request", vec![""]),
        ("", "malformed-json", vec![]),
        (r#"{"external_id":"#, "malformed-json", vec![]),
    ];
    for (body, code, pointers) in cases {
        let response = app.create_agent(&credentials, body).await?;
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
async fn body_of_an_agent_has_at_most_64_kib() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let body = r#"{"external_id":"bot","name":"Bot"}"#;
    let largest = format!("{body}{}", " ".repeat(65_536 - body.len()));
    assert_eq!(app.create_agent(&credentials, &largest).await?.status(), 201);
    let response = app.create_agent(&credentials, &format!("{largest} ")).await?;
    assert_eq!(response.status(), 413);
    assert_eq!(response.json::<Value>().await?["code"], "payload-too-large");
    // The authors of an import may need more.
    let longest: Vec<String> = (0..50).map(|number| format!("{number:02}{}", "🦀".repeat(1_022))).collect();
    let wanted = FindAgents { ids: longest.clone(), external_ids: longest };
    assert_eq!(find(&app, &credentials, wanted).await?, NONE);
    Ok(())
}

#[tokio::test]
async fn unreadable_call_is_refused_without_its_content() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let body = r#"{"ids": "a customer's words", "external_ids": []}"#.to_owned();
    let response =
        app.post("/internal/v1/agents/find", &claims_of(&credentials, Scope::Assess), body).await?;
    assert_eq!(response.status(), 400);
    let problem: Value = response.json().await?;
    assert_eq!(problem["detail"], "JSON of another shape at 1:28");
    Ok(())
}

#[tokio::test]
async fn call_needs_token_with_audience_kind_and_scope() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let body = r#"{"external_id":"bot","name":"Bot"}"#.to_owned();
    let url = format!("{}/internal/v1/agents", app.address);
    let response = app.http.post(&url).body(body.clone()).send().await?;
    assert_eq!(response.status(), 401);
    let request_id = response.headers()["x-request-id"].to_str()?.to_owned();
    assert_eq!(response.json::<Value>().await?["request_id"], request_id);

    let tenant = claims_of(&credentials, Scope::Agents);
    let foreign = app.tokens.issue(Audience::Ingest, &tenant, now())?;
    assert_eq!(app.http.post(&url).bearer_auth(foreign).body(body.clone()).send().await?.status(), 401);

    let path = "/internal/v1/agents";
    assert_eq!(app.post(path, &ServiceClaims::Service, body.clone()).await?.status(), 401);
    let response = app.post(path, &claims_of(&credentials, Scope::Exports), body.clone()).await?;
    assert_eq!(response.status(), 403);
    assert_eq!(response.json::<Value>().await?["code"], "missing-scope");

    let no_scope = Tenant { organization_id: credentials.organization_id, scopes: Scopes::from_iter([]) };
    let find = json!({"ids": [], "external_ids": []}).to_string();
    let response =
        app.post("/internal/v1/agents/find", &ServiceClaims::Tenant(no_scope), find.clone()).await?;
    assert_eq!(response.status(), 200, "finding agents needs no scope");
    assert_eq!(app.post("/internal/v1/agents/find", &ServiceClaims::Service, find).await?.status(), 401);
    Ok(())
}

const NONE: [&str; 0] = [];

const TOPICS: &[Topic] = &[AgentCreated::TOPIC];
const AGENT_CREATED: Subscription =
    Subscription { queue: "test.agent-created", topics: TOPICS, max_batch: 10, max_in_flight: 10 };

struct Listener(Arc<Mutex<Vec<AgentCreated>>>);

#[async_trait]
impl Handler for Listener {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        for delivery in deliveries {
            if let (Ok(event), Ok(mut received)) = (delivery.decode(), self.0.lock()) {
                received.push(event);
            }
        }
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

async fn create(app: &TestApp, credentials: &Credentials, external_id: &str) -> Result<String> {
    let body = json!({"external_id": external_id, "name": new_id::<uuid::Uuid>().to_string()}).to_string();
    let agent: Value = app.create_agent(credentials, &body).await?.error_for_status()?.json().await?;
    Ok(agent["id"].as_str().unwrap_or_default().to_owned())
}

/// The external ids found, sorted.
async fn find(app: &TestApp, credentials: &Credentials, wanted: FindAgents) -> Result<Vec<String>> {
    let claims = claims_of(credentials, Scope::Assess);
    let body = serde_json::to_string(&wanted)?;
    let response = app.post("/internal/v1/agents/find", &claims, body).await?.error_for_status()?;
    let found: FoundAgents = response.json().await?;
    let mut external_ids: Vec<String> = found.agents.into_iter().map(|agent| agent.external_id).collect();
    external_ids.sort();
    Ok(external_ids)
}
