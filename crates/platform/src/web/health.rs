//! `/healthz`: liveness, without touching a dependency. `/readyz`: readiness.

use std::collections::BTreeMap;

use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, web};
use serde::Serialize;

use crate::runtime::{CheckOutcome, Readiness};

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    checks: BTreeMap<String, CheckOutcome>,
}

/// 200 while the process can respond.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "alive", checks: BTreeMap::new() })
}

/// 200 while requests can be served (`ready`, or `degraded` while an optional dependency is away), else 503. The response
/// names the failed checks; their reasons are in the log.
pub async fn readyz(readiness: web::Data<Readiness>) -> HttpResponse {
    let report = readiness.report().await;
    let is_degraded = report.checks.values().any(|outcome| *outcome == CheckOutcome::Degraded);
    if report.ready {
        let status = if is_degraded { "degraded" } else { "ready" };
        HttpResponse::Ok().json(Health { status, checks: report.checks })
    } else {
        HttpResponse::ServiceUnavailable()
            .insert_header((RETRY_AFTER, "1"))
            .json(Health { status: "not_ready", checks: report.checks })
    }
}
