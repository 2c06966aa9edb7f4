//! `/metrics` on a separate port.

use std::sync::Arc;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::ServiceConfig;
use actix_web::{HttpResponse, web};

use super::{ServerSettings, resource, serve_without_readiness_metrics};
use crate::runtime::{Phase, Tasks};
use crate::telemetry::Telemetry;

/// Text exposition format of Prometheus.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/metrics`, if configured, until the last shutdown phase, so that a shutdown can be observed.
///
/// # Errors
/// When the listener cannot be used.
pub fn serve_metrics(tasks: &mut Tasks, telemetry: &mut Telemetry) -> std::io::Result<()> {
    let Some((listener, metrics)) = telemetry.take_metrics() else { return Ok(()) };
    tracing::info!(address = %listener.local_addr()?, "metrics are served");
    metrics.spawn_upkeep(tasks);
    let settings = ServerSettings { workers: 1, max_connections: 64, ..ServerSettings::default() };
    let routes = move |app: &mut ServiceConfig| {
        let metrics = metrics.clone();
        let scrape = move || {
            let text = metrics.render();
            async { HttpResponse::Ok().insert_header((CONTENT_TYPE, TEXT_FORMAT)).body(text) }
        };
        app.service(resource("/metrics", vec![("GET", web::get().to(scrape))]));
    };
    serve_without_readiness_metrics(tasks, Phase::Background, "metrics", listener, settings, Arc::new(routes))
}
