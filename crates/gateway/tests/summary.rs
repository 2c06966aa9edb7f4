//! `GET /v1/evaluations/summary`: the pending imports that the gateway adds to the answer of export; and the `ETag`s of summaries,
//! lists and neighbours.

#![cfg(target_os = "linux")]

mod support;

use std::sync::Mutex;

use actix_web::web::{Data, ServiceConfig, get};
use actix_web::{HttpRequest, HttpResponse};
use anyhow::{Context as _, Result, ensure};
use assay_contracts::evaluations::{Coverage, Distributions, Measures, Period, Summary, SummaryQuery};
use assay_contracts::internal::TicketCount;
use assay_contracts::time::Timestamp;
use assay_platform::http_client::client_builder;
use assay_platform::runtime::LockExt as _;
use assay_platform::web::{WebError, all_query_pairs, resource, respond_with_etag};
use reqwest::{Client, Response, StatusCode};
use serde_json::json;

use self::support::Gateway;
use self::support::services::Services;

const SUMMARY: &str = "/v1/evaluations/summary";

/// What the stand-ins of ingest and export know.
#[derive(Debug, Default)]
struct Known {
    imported: u64,
    /// All of these are scored.
    evaluated: u64,
    /// Whether ingest answers 503.
    is_ingest_failing: bool,
    /// The queries of both counts.
    counted: Vec<String>,
}

type Shared = Data<Mutex<Known>>;

async fn count_imported(request: HttpRequest, known: Shared) -> HttpResponse {
    let mut known = known.locked();
    known.counted.push(request.query_string().to_owned());
    if known.is_ingest_failing {
        return HttpResponse::ServiceUnavailable().finish();
    }
    HttpResponse::Ok().json(TicketCount { count: known.imported, since: None })
}

async fn count_evaluated(request: HttpRequest, known: Shared) -> HttpResponse {
    let mut known = known.locked();
    known.counted.push(request.query_string().to_owned());
    HttpResponse::Ok().json(TicketCount { count: known.evaluated, since: None })
}

/// Export knows only imports that are evaluated.
async fn summarize(request: HttpRequest, known: Shared) -> Result<HttpResponse, WebError> {
    let scored = known.locked().evaluated;
    let coverage = Coverage { imported: scored, scored, not_applicable: 0, failed: 0, pending: 0 };
    let query = SummaryQuery::parse(all_query_pairs(&request));
    let has_only_period = query.is_ok_and(|query| query.filters.is_period_only());
    let summary = Summary {
        period: Period { from: Timestamp::MIN, to: Timestamp::MAX },
        totals: Measures { count: scored, scored, ..Measures::default() },
        distributions: Distributions::default(),
        charge_reasons: Vec::new(),
        series: None,
        breakdown: None,
        compared: None,
        coverage: has_only_period.then_some(coverage),
    };
    respond_with_etag(&request, &summary)
}

async fn show_count(request: HttpRequest, known: Shared) -> Result<HttpResponse, WebError> {
    let count = known.locked().evaluated;
    respond_with_etag(&request, &json!({ "count": count }))
}

struct Fixture {
    http: Client,
    gateway: Gateway,
    key: String,
    known: Shared,
    _services: Services,
}

impl Fixture {
    fn start() -> Result<Self> {
        let known: Shared = Data::new(Mutex::new(Known::default()));
        let shared = known.clone();
        let services = Services::start_with(move |app: &mut ServiceConfig| {
            app.app_data(shared.clone())
                .service(resource("/internal/v1/tickets", vec![("GET", get().to(count_imported))]))
                .service(resource("/internal/v1/evaluations", vec![("GET", get().to(show_count))]))
                .service(resource("/internal/v1/evaluations/count", vec![("GET", get().to(count_evaluated))]))
                .service(resource("/internal/v1/evaluations/summary", vec![("GET", get().to(summarize))]))
                .service(resource(
                    "/internal/v1/evaluations/{id}/neighbours",
                    vec![("GET", get().to(show_count))],
                ));
        })?;
        let gateway = Gateway::start_with(&services.address, None, |config| {
            config.max_in_flight = 16;
            config.service_deadline_milliseconds = 5_000;
        })?;
        let key = services.new_key()?.reveal().to_owned();
        Ok(Self { http: client_builder().build()?, gateway, key, known, _services: services })
    }

    fn set(&self, imported: u64, evaluated: u64) {
        let mut known = self.known.locked();
        (known.imported, known.evaluated) = (imported, evaluated);
    }

    async fn get(&self, path: &str) -> Result<Response> {
        self.get_if_changed(path, "\"-\"").await
    }

    /// Asks with an `ETag` that is known.
    async fn get_if_changed(&self, path: &str, etag: &str) -> Result<Response> {
        let request = self.http.get(self.gateway.url(path)).bearer_auth(&self.key);
        Ok(request.header("if-none-match", etag).send().await?)
    }

    async fn coverage(&self, path: &str) -> Result<Option<Coverage>> {
        let summary: Summary = self.get(path).await?.error_for_status()?.json().await?;
        Ok(summary.coverage)
    }
}

/// The `ETag` of a successful answer.
fn etag_of(response: &Response) -> Result<String> {
    ensure!(response.status() == StatusCode::OK, "{response:?}");
    Ok(response.headers().get("etag").context("no ETag")?.to_str()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_has_the_pending_imports_of_its_period() -> Result<()> {
    let fixture = Fixture::start()?;
    fixture.set(7, 5);
    let with_pending = Coverage { imported: 7, scored: 5, not_applicable: 0, failed: 0, pending: 2 };
    for period in ["", "from=0", "from=0&to=86400000"] {
        let coverage = fixture.coverage(&format!("{SUMMARY}?{period}&step=week")).await?;
        ensure!(coverage == Some(with_pending), "{period}: {coverage:?}");
        let counted = std::mem::take(&mut fixture.known.locked().counted);
        let of_period = |query: &String| query.starts_with(period) && query.contains("since=");
        ensure!(counted.len() == 2 && counted.iter().all(of_period), "{period}: {counted:?}");
        ensure!(!counted.iter().any(|query| query.contains("step")), "{counted:?}");
    }
    // Evaluated between the two counts.
    fixture.set(4, 5);
    let coverage = fixture.coverage(SUMMARY).await?.context("no coverage")?;
    ensure!((coverage.imported, coverage.pending) == (5, 0), "{coverage:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_is_sent_again_when_either_count_has_changed() -> Result<()> {
    let fixture = Fixture::start()?;
    fixture.set(7, 5);
    let first = fixture.get(SUMMARY).await?;
    let mut etag = etag_of(&first)?;
    ensure!(first.headers()["cache-control"] == "private, no-cache", "{first:?}");
    for (imported, evaluated) in [(8, 5), (8, 8), (9, 9)] {
        let unchanged = fixture.get_if_changed(SUMMARY, &etag).await?;
        ensure!(unchanged.status() == StatusCode::NOT_MODIFIED, "{unchanged:?}");
        ensure!(unchanged.headers()["etag"] == etag.as_str(), "{unchanged:?}");
        ensure!(unchanged.bytes().await?.is_empty(), "a body that the client has");
        fixture.set(imported, evaluated);
        let changed = fixture.get_if_changed(SUMMARY, &etag).await?;
        let new = etag_of(&changed)?;
        ensure!(new != etag, "{imported} and {evaluated}: the same ETag");
        let coverage = changed.json::<Summary>().await?.coverage.context("no coverage")?;
        ensure!((coverage.imported, coverage.pending) == (imported, imported - evaluated), "{coverage:?}");
        etag = new;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn summary_lacks_its_coverage_while_imports_cannot_be_counted() -> Result<()> {
    let fixture = Fixture::start()?;
    fixture.set(5, 5);
    let complete = etag_of(&fixture.get(SUMMARY).await?)?;
    fixture.known.locked().is_ingest_failing = true;
    let response = fixture.get_if_changed(SUMMARY, &complete).await?;
    ensure!(etag_of(&response)? != complete, "the ETag of a summary with its coverage");
    let summary: Summary = response.json().await?;
    ensure!(summary.coverage.is_none() && summary.totals.count == 5, "{summary:?}");
    fixture.known.locked().is_ingest_failing = false;
    let again = fixture.get_if_changed(SUMMARY, &complete).await?;
    ensure!(again.status() == StatusCode::NOT_MODIFIED, "{again:?}");
    Ok(())
}

/// The gateway passes `If-None-Match` on, and relays the answer.
#[tokio::test(flavor = "multi_thread")]
async fn other_answers_of_export_are_not_sent_again_while_unchanged() -> Result<()> {
    let fixture = Fixture::start()?;
    let neighbours = "/v1/tickets/0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11/neighbours?charge=disputed";
    let of_filter = format!("{SUMMARY}?charge=disputed");
    for path in [of_filter.as_str(), "/v1/evaluations?limit=5", neighbours] {
        fixture.set(5, 5);
        let etag = etag_of(&fixture.get(path).await?)?;
        let unchanged = fixture.get_if_changed(path, &etag).await?;
        ensure!(unchanged.status() == StatusCode::NOT_MODIFIED, "{path}: {unchanged:?}");
        ensure!(unchanged.headers()["etag"] == etag.as_str(), "{path}: {unchanged:?}");
        ensure!(unchanged.bytes().await?.is_empty(), "{path}: a body that the client has");
        fixture.set(6, 6);
        ensure!(etag_of(&fixture.get_if_changed(path, &etag).await?)? != etag, "{path}: the same ETag");
    }
    ensure!(fixture.known.locked().counted.is_empty(), "pending imports of a filter were counted");
    Ok(())
}
