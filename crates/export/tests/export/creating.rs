//! `POST /internal/v1/exports`. Replays with an `Idempotency-Key`: `tests/e2e/scenarios/idempotency.rs`.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use assay_contracts::event::{Event, ExportRequested, Topic};
use assay_contracts::export::{ExportKind, ExportStatus};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{number_on, on_both_databases};
use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::test_app::{DEADLINE, TestApp, claims, header, problem};

async fn created_export_is_pending_with_its_location(app: TestApp) -> Result<()> {
    let organization: OrganizationId = new_id();
    let body = r#"{"kind":"resolution_audit","format":"csv","filters":{"from":5,"to":7},"extra":1}"#;
    let response = app.post(organization, body, None).await?;
    assert_eq!(response.status(), 201);
    let location = header(&response, "location").unwrap_or_default();
    assert_eq!(header(&response, "content-type").as_deref(), Some("application/json"));
    let created: Value = response.json().await?;
    let id = created["id"].as_str().unwrap_or_default();
    assert_eq!(location, format!("/v1/evaluations/exports/{id}"));
    let at = created["created_at"].as_i64().unwrap_or_default();
    let expected = json!({
        "id": id, "kind": "resolution_audit", "format": "csv", "status": "pending",
        "filters": {"from": 5, "to": 7}, "created_at": at, "updated_at": at,
    });
    assert_eq!(created, expected);
    assert!((now().as_millis() - at).abs() < 60_000);
    let read = app.read(organization, id.parse()?).await?;
    assert_eq!((read.kind, read.status), (ExportKind::ResolutionAudit, ExportStatus::Pending));
    Ok(())
}

async fn invalid_fields_of_the_body_are_reported(app: TestApp) -> Result<()> {
    let mut cases = vec![
        (json!({}), "/kind"),
        (json!([]), ""),
        (json!({"kind": "axis", "format": "xlsx"}), "/format"),
        (json!({"kind": "axis", "format": "CSV"}), "/format"),
        (json!({"kind": "axis", "filters": {"from": 2, "to": 1}}), "/filters/from"),
    ];
    for kind in [json!(""), json!("x"), json!("Axis"), json!("audit"), json!(null), json!(1), json!(["axis"])]
    {
        cases.push((json!({"kind": kind}), "/kind"));
    }
    for filters in [json!("all"), json!([]), json!(7)] {
        cases.push((json!({"kind": "axis", "filters": filters}), "/filters"));
    }
    let too_late = Timestamp::MAX.as_millis() + 1;
    for moment in [json!(-1), json!(too_late), json!(1.5), json!("1"), json!("2025-11-20"), json!(1e30)] {
        cases.push((json!({"kind": "axis", "filters": {"from": moment}}), "/filters/from"));
        cases.push((json!({"kind": "axis", "filters": {"to": moment}}), "/filters/to"));
    }
    for (body, pointer) in cases {
        let answer = app.post(new_id(), &body.to_string(), None).await?;
        let problem = problem(answer, 400, "invalid-request").await?;
        let found: Vec<&str> = problem.errors.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(found, [pointer], "{body}");
    }
    let malformed = problem(app.post(new_id(), r#"{"kind":"#, None).await?, 400, "malformed-json").await?;
    assert!(malformed.errors.is_empty(), "{malformed:?}");
    assert_eq!(number_on(&app.test_database.database, "SELECT count(*) FROM exports").await?, 0);
    Ok(())
}

async fn each_job_is_published_once(app: TestApp) -> Result<()> {
    let (sender, mut published) = mpsc::unbounded_channel();
    let (bus, stop) = (app.bus.clone(), CancellationToken::new());
    let subscription =
        Subscription { queue: "test.export-requested", topics: TOPICS, max_batch: 1, max_in_flight: 1 };
    let listening = bus.consume(subscription, Arc::new(Listener { sender }), stop.clone());
    let creating = async {
        // Ends the listener on errors, too.
        let _stop = stop.drop_guard();
        let organization: OrganizationId = new_id();
        let mut created = HashSet::new();
        let mut received = HashSet::new();
        for _ in 0..3 {
            created.insert(app.create(organization).await?.id);
        }
        while received.len() < created.len() {
            let event = timeout(DEADLINE, published.recv()).await?.context("the listener is gone")?;
            assert_eq!((event.organization_id, event.kind), (organization, ExportKind::Axis));
            assert!(received.insert(event.export_id));
        }
        assert_eq!(received, created);
        anyhow::Ok(())
    };
    let ((), outcome) = tokio::join!(listening, creating);
    outcome
}

const TOPICS: &[Topic] = &[ExportRequested::TOPIC];

struct Listener {
    sender: mpsc::UnboundedSender<ExportRequested>,
}

#[async_trait]
impl Handler for Listener {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let forward = |delivery: &Delivery| match delivery.decode().map(|event| self.sender.send(event)) {
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Reject { reason: error.to_string() },
        };
        deliveries.iter().map(forward).collect()
    }
}

async fn concurrent_requests_with_one_key_create_one_export(app: TestApp) -> Result<()> {
    let organization: OrganizationId = new_id();
    let requests = (0..8).map(|_| async {
        let response = app.post(organization, r#"{"kind":"axis"}"#, Some("same")).await?;
        anyhow::Ok((response.status().as_u16(), response.text().await?))
    });
    let mut responses = HashSet::new();
    for response in futures_util::future::join_all(requests).await {
        responses.insert(response?);
    }
    assert_eq!(responses.len(), 1, "{responses:?}");
    assert_eq!(number_on(&app.test_database.database, "SELECT count(*) FROM exports").await?, 1);
    Ok(())
}

async fn calls_need_a_service_token_with_the_scope(app: TestApp) -> Result<()> {
    let id: ExportId = new_id();
    let organization: OrganizationId = new_id();
    let calls = [
        (Method::POST, String::new()),
        (Method::GET, String::new()),
        (Method::GET, format!("/{id}")),
        (Method::GET, format!("/{id}/download")),
    ];
    for (method, path) in calls {
        let address = format!("{}/internal/v1/exports{path}", app.address);
        let without_token = app.http.request(method.clone(), &address);
        problem(without_token.send().await?, 401, "unauthorized").await?;
        let own = claims(organization, Scope::Exports);
        let token_for_ingest = app.tokens.issue(Audience::Ingest, &own, now())?;
        let wrong_audience = app.http.request(method.clone(), &address).bearer_auth(token_for_ingest);
        problem(wrong_audience.send().await?, 401, "unauthorized").await?;
        let without_tenant = app.request(method.clone(), &path, &ServiceClaims::Service)?;
        problem(without_tenant.send().await?, 401, "unauthorized").await?;
        let wrong_scope = app.request(method, &path, &claims(organization, Scope::Assess))?;
        problem(wrong_scope.send().await?, 403, "missing-scope").await?;
    }
    Ok(())
}

on_both_databases! { TestApp {
    created_export_is_pending_with_its_location,
    invalid_fields_of_the_body_are_reported,
    each_job_is_published_once,
    concurrent_requests_with_one_key_create_one_export,
    calls_need_a_service_token_with_the_scope,
} }
