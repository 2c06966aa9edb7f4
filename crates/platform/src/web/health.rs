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

/// 200 when every check holds, else 503; which check fails is answered, why is in the log.
pub async fn readyz(readiness: web::Data<Readiness>) -> HttpResponse {
    let report = readiness.report().await;
    if report.ready {
        HttpResponse::Ok().json(Health { status: "ready", checks: report.checks })
    } else {
        HttpResponse::ServiceUnavailable()
            .insert_header((RETRY_AFTER, "1"))
            .json(Health { status: "not_ready", checks: report.checks })
    }
}
