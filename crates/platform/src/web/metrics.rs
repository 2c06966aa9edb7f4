//! `/metrics` on a port of its own.

use std::net::TcpListener;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpResponse, web};

use super::{ServerSettings, resource, serve_unwatched};
use crate::runtime::{Phase, Tasks};
use crate::telemetry::metrics::Metrics;

/// Text exposition format of Prometheus.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves what was counted. The last tasks to end, so that a shutdown can be watched.
pub(crate) fn serve_metrics(
    tasks: &mut Tasks,
    listener: TcpListener,
    metrics: Metrics,
) -> std::io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "metrics are served");
    metrics.keep_up(tasks);
    let settings = ServerSettings { workers: 1, max_connections: 64, ..ServerSettings::default() };
    serve_unwatched(tasks, Phase::Relay, "metrics", listener, settings, move |app| {
        let metrics = metrics.clone();
        let scrape = move || {
            let text = metrics.render();
            async { HttpResponse::Ok().insert_header((CONTENT_TYPE, TEXT_FORMAT)).body(text) }
        };
        app.service(resource("/metrics", vec![("GET", web::get().to(scrape))]));
    })
}
