//! `/healthz`: the process lives, nothing is touched. `/readyz`: requests should be sent here.

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

/// 200 as long as the process can answer.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "alive", checks: BTreeMap::new() })
}

/// 200 as long as requests can be answered (`ready`, or `degraded` while something is away that can be done without for
/// a while), else 503; which check does not hold is answered, why is in the log.
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
