//! Starts the gateway; the only place that knows all of its parts.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use assay_clients::{ClientError, RegistryClient, ServiceClient, http_client};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{BodyBudget, ServerSettings, serve};
use tokio::sync::Semaphore;
use url::Url;

use crate::app::{ApiKeyCache, REPORT_INTERVAL, RateLimit, Refusals, Slots, report_refusals};
use crate::config::Config;
use crate::http::{Gateway, configure};
use crate::metrics;

/// Maximum number of console responses being sent at once. A response stays in memory until its client has received it.
const MAX_CONSOLE_RESPONSES: usize = 512;

/// Maximum number of large bodies that are parsed at once, for each worker thread.
const LARGE_BODIES_PER_WORKER: usize = 2;

/// Memory of all forms of the console that arrive at the same time. One has up to 64 KiB.
const FORM_MEMORY_BYTES: usize = 16 * 1024 * 1024;

/// Dependencies that the process provides.
pub struct Dependencies {
    /// A bound listener.
    pub listener: TcpListener,
    /// Issues the tokens for calls to the services.
    pub tokens: ServiceTokens,
    /// Base URL of agent-registry.
    pub registry_url: Url,
    /// Base URL of ingest.
    pub ingest_url: Url,
    /// Base URL of scoring-worker.
    pub scoring_url: Url,
    /// Base URL of export.
    pub export_url: Url,
    /// Base URL of webhooks; `None` when they are turned off.
    pub webhooks_url: Option<Url>,
    /// Base URL of console; `None` when there is none.
    pub console_url: Option<Url>,
}

/// The gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is invalid.
    #[error("gateway.{0}")]
    Setting(&'static str),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listener cannot be used.
    #[error("gateway cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// Starts the gateway's tasks.
///
/// # Errors
/// [`StartError`].
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    validate(config)?;
    metrics::describe();
    let http = http_client()?;
    let deadline = Duration::from_millis(config.service_deadline_milliseconds);
    let service = |address: &Url, audience| {
        ServiceClient::new(http.clone(), address.clone(), audience, dependencies.tokens.clone(), deadline)
            .with_max_concurrent_calls(max_calls_per_service(config.max_in_flight))
    };
    let registry = service(&dependencies.registry_url, Audience::AgentRegistry);
    let gateway = Gateway {
        keys: ApiKeyCache::new(
            // A limit of its own: a forwarded request looks up its key first. If both shared one limit, forwarded requests could
            // use it up, and look-ups would fail.
            RegistryClient::new(registry.clone().with_max_concurrent_calls(config.max_in_flight.max(1))),
            Duration::from_secs(config.key_cache_seconds),
            config.max_unknown_key_look_ups,
        ),
        ingest: service(&dependencies.ingest_url, Audience::Ingest),
        scoring: service(&dependencies.scoring_url, Audience::Scoring),
        export: service(&dependencies.export_url, Audience::Export),
        webhooks: dependencies.webhooks_url.as_ref().map(|url| service(url, Audience::Webhooks)),
        console: dependencies.console_url.as_ref().map(|url| service(url, Audience::Console)),
        registry,
        rate_limit: RateLimit::new(config.rate_limit_per_second),
        refusals: Arc::new(Refusals::default()),
        in_flight: Slots::new(config.max_in_flight),
        keyless_in_flight: Arc::new(Semaphore::new(config.max_keyless_in_flight)),
        downloads: Slots::new(config.max_downloads),
        body_budget: BodyBudget::new(config.body_memory_bytes)
            .parsing_at_once(LARGE_BODIES_PER_WORKER * config.workers),
        console_in_flight: Semaphore::new(config.max_console_in_flight),
        console_responses: Arc::new(Semaphore::new(MAX_CONSOLE_RESPONSES)),
        form_budget: BodyBudget::new(FORM_MEMORY_BYTES),
        config: config.clone(),
    };
    watch_services(&gateway, tasks);
    start_reports(&gateway, tasks);
    let settings = ServerSettings {
        is_public: true,
        workers: config.workers,
        max_connections: config.max_connections,
        response_stall: Duration::from_secs(config.response_stall_seconds),
        ..ServerSettings::default()
    };
    let routes = configure(Data::new(gateway));
    serve(tasks, Phase::ServePublic, "gateway", dependencies.listener, settings, routes)?;
    Ok(())
}

/// Three quarters of `max_in_flight`, rounded up, so that calls to a slow service leave the rest to the others.
fn max_calls_per_service(max_in_flight: usize) -> usize {
    (max_in_flight - max_in_flight / 4).max(1)
}

/// Registers a readiness check and starts the circuit breaker of each service. Without agent-registry the gateway is not ready,
/// because no key can be resolved; without another service it is degraded.
fn watch_services(gateway: &Gateway, tasks: &mut Tasks) {
    let services = [&gateway.registry, &gateway.ingest, &gateway.scoring, &gateway.export];
    for service in services.into_iter().chain(&gateway.webhooks).chain(&gateway.console) {
        let checked = service.clone();
        let is_ready = move || {
            let service = checked.clone();
            async move { service.ready().await.map_err(|error| error.to_string()) }
        };
        if service.name() == gateway.registry.name() {
            tasks.readiness().register(service.name(), is_ready);
        } else {
            tasks.readiness().register_degrading(service.name(), is_ready);
        }
        let watched = service.clone();
        tasks.spawn(Phase::Background, format!("gateway circuit of {}", service.name()), move |stop| {
            watched.watch(stop)
        });
    }
}

fn start_reports(gateway: &Gateway, tasks: &mut Tasks) {
    const NAME: &str = "gateway reports of refused imports";
    let state = (Arc::clone(&gateway.refusals), gateway.ingest.clone());
    tasks.spawn_periodic(Phase::Background, NAME, REPORT_INTERVAL, state, |(refusals, ingest)| async move {
        report_refusals(&refusals, &ingest).await
    });
}

fn validate(config: &Config) -> Result<(), StartError> {
    if config.body_memory_bytes < config.max_body_bytes {
        return Err(StartError::Setting("body_memory_bytes must be max_body_bytes or more"));
    }
    if config.workers == 0 {
        return Err(StartError::Setting("workers must be 1 or more"));
    }
    if config.public_url.is_empty() {
        if !config.listen.ip().is_loopback() {
            tracing::warn!(
                "gateway.public_url is empty: download addresses are http:// and the request's Host"
            );
        }
    } else if !is_web_address(&config.public_url) {
        return Err(StartError::Setting(
            "public_url must be http:// or https://, a host in lower case and a port that is not the default, or empty",
        ));
    }
    Ok(())
}

/// Whether this is nothing but scheme, host and port, in the form in which browsers write them.
fn is_web_address(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    matches!(url.scheme(), "http" | "https")
        && text.trim_end_matches('/') == url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_url_is_scheme_host_and_port() {
        for address in [
            "https://assay.example",
            "https://assay.example/",
            "https://assay.example:8443",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
        ] {
            assert!(is_web_address(address), "{address}");
        }
        for address in [
            "assay.example",
            "localhost:8080",
            "ftp://assay.example",
            "https://Assay.example",
            "https://assay.example:443",
            "https://assay.example/api",
            "https://assay.example?tenant=1",
            "https://assay.example#top",
            "https://user@assay.example",
            " https://assay.example",
        ] {
            assert!(!is_web_address(address), "{address}");
        }
    }
}
