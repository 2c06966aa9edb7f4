//! Refused imports are reported to ingest, each for its organization.

#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::middleware::from_fn;
use actix_web::web::{Bytes, Data, Json, post};
use anyhow::{Result, ensure};
use assay_contracts::ids::OrganizationId;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::refusal::{ImportRefusal, ImportRefusals};
use assay_contracts::tenant::Scope;
use assay_contracts::validation::FieldError;
use assay_platform::auth::Audience;
use assay_platform::http_client::client_builder;
use assay_platform::runtime::LockExt as _;
use assay_platform::web::{Caller, ServiceAuth, WebError, resource, service_auth_middleware};
use assay_testkit::eventually_within;
use reqwest::{Client, Response};
use serde_json::json;

use self::support::services::Services;
use self::support::{Gateway, tokens};

type Reports = Mutex<BTreeMap<OrganizationId, Vec<ImportRefusal>>>;

async fn keep(
    caller: Caller,
    reports: Data<Reports>,
    report: Json<ImportRefusals>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Assess)?.organization_id;
    reports.locked().entry(organization_id).or_default().extend(report.into_inner().refusals);
    Ok(HttpResponse::NoContent().finish())
}

/// What ingest answers to every import.
fn refusal_of_ingest() -> Problem {
    let error =
        FieldError { pointer: "/messages/0/author/external_id".to_owned(), detail: "is unknown".to_owned() };
    Problem::new(ProblemCode::UnknownAgent, "no such agent").with_errors(vec![error])
}

async fn refuse(_body: Bytes) -> Result<HttpResponse, WebError> {
    Err(refusal_of_ingest().into())
}

fn start(reports: Data<Reports>) -> Result<(Services, Gateway)> {
    let auth = Data::new(ServiceAuth { tokens: tokens()?, audience: Audience::Ingest });
    let services = Services::start_with(move |app| {
        app.app_data(reports.clone())
            .app_data(auth.clone())
            .service(resource("/internal/v1/conversations", vec![("POST", post().to(refuse))]))
            .service(
                resource("/internal/v1/refusals", vec![("POST", post().to(keep))])
                    .wrap(from_fn(service_auth_middleware)),
            );
    })?;
    let gateway = Gateway::start_with(&services.address, None, |config| {
        config.max_in_flight = 16;
        config.max_body_bytes = 64 * 1024;
        config.body_memory_bytes = 1024 * 1024;
        config.service_deadline_milliseconds = 5_000;
    })?;
    Ok((services, gateway))
}

async fn import(http: &Client, gateway: &Gateway, key: &str, body: String) -> Result<Response> {
    Ok(http.post(gateway.url("/v1/assess")).bearer_auth(key).body(body).send().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_gateway_and_ingest_are_reported_for_their_organization() -> Result<()> {
    let reports = Data::new(Reports::default());
    let (services, gateway) = start(reports.clone())?;
    let (first, second) = (services.new_key()?, services.new_key()?);
    let http = client_builder().build()?;

    let invalid = import(&http, &gateway, first.reveal(), json!({"ticket_id": "t"}).to_string()).await?;
    ensure!(invalid.status() == 400, "{invalid:?}");
    let message = json!({"author": {"type": "contact", "external_id": "c"}, "content": "x",
                         "external_id": "m", "timestamp": 0});
    let valid = json!({"ticket_id": "t", "messages": [message]}).to_string();
    let relayed = import(&http, &gateway, first.reveal(), valid).await?;
    ensure!(relayed.status() == 404, "{relayed:?}");
    let relayed = Problem { request_id: None, ..relayed.json::<Problem>().await? };
    ensure!(relayed == refusal_of_ingest(), "{relayed:?}");
    let malformed = import(&http, &gateway, second.reveal(), "{".to_owned()).await?;
    ensure!(malformed.status() == 400, "{malformed:?}");

    eventually_within(Duration::from_secs(30), "the reports", || async {
        Ok(reports.locked().values().map(Vec::len).sum::<usize>() == 3)
    })
    .await?;
    let reported: Vec<Vec<ImportRefusal>> = std::mem::take(&mut *reports.locked()).into_values().collect();
    let mut codes: Vec<Vec<&str>> = Vec::new();
    for refusals in &reported {
        codes.push(refusals.iter().map(|refusal| refusal.code.as_str()).collect());
    }
    codes.sort();
    ensure!(codes == [vec!["invalid-request", "unknown-agent"], vec!["malformed-json"]], "{codes:?}");
    let pointers = reported.iter().flatten().flat_map(|refusal| &refusal.errors).map(|error| &error.pointer);
    let pointers: Vec<&String> = pointers.collect();
    ensure!(
        pointers.iter().any(|pointer| *pointer == "/messages")
            && pointers.iter().any(|pointer| *pointer == "/messages/0/author/external_id"),
        "{pointers:?}"
    );
    Ok(())
}
