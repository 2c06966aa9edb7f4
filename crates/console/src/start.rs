//! Starts the console; the only place that knows all of its parts.

use std::net::TcpListener;
use std::time::Duration;

use actix_web::web::Data;
use assay_clients::{ClientError, ServiceClient, http_client};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{ServerSettings, ServiceAuth, serve};
use tokio::sync::Semaphore;
use url::Url;

use crate::app::{Services, SessionLookUps};
use crate::config::Config;
use crate::domain::FailedSignIns;
use crate::http::{Assets, Console, MAX_TRANSCRIPTS_IN_MEMORY, configure};

/// Dependencies that the process provides.
pub struct Dependencies {
    /// A bound listener.
    pub listener: TcpListener,
    /// Verifies the gateway's tokens, and issues those for calls to the services.
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
}

/// The console cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listener cannot be used.
    #[error("console cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// Starts the console's tasks.
///
/// # Errors
/// [`StartError`].
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let http = http_client()?;
    let deadline = Duration::from_millis(config.service_deadline_milliseconds);
    let service = |address: &Url, audience| {
        ServiceClient::new(http.clone(), address.clone(), audience, dependencies.tokens.clone(), deadline)
    };
    let services = Services {
        registry: service(&dependencies.registry_url, Audience::AgentRegistry),
        ingest: service(&dependencies.ingest_url, Audience::Ingest),
        scoring: service(&dependencies.scoring_url, Audience::Scoring),
        export: service(&dependencies.export_url, Audience::Export),
        webhooks: dependencies.webhooks_url.as_ref().map(|url| service(url, Audience::Webhooks)),
    };
    watch_services(&services, tasks);
    crate::metrics::describe();
    let console = Data::new(Console {
        services,
        assets: Assets::load(),
        failed_sign_ins: FailedSignIns::new(config.failed_sign_ins_per_minute),
        session_look_ups: SessionLookUps::new(),
        transcript_permits: Semaphore::new(MAX_TRANSCRIPTS_IN_MEMORY),
    });
    let auth = ServiceAuth { tokens: dependencies.tokens, audience: Audience::Console };
    let settings = ServerSettings::default();
    serve(tasks, Phase::ServeInternal, "console", dependencies.listener, settings, move |app| {
        configure(app, console.clone(), auth.clone());
    })?;
    Ok(())
}

/// Registers a readiness check and a circuit breaker per service. Without agent-registry signing in fails: the console is
/// not ready. Without another service some pages fail: it is degraded.
fn watch_services(services: &Services, tasks: &mut Tasks) {
    let all = [&services.registry, &services.ingest, &services.scoring, &services.export];
    for service in all.into_iter().chain(&services.webhooks) {
        let checked = service.clone();
        let is_ready = move || {
            let service = checked.clone();
            async move { service.ready().await.map_err(|error| error.to_string()) }
        };
        let name = format!("console to {}", service.name());
        if service.name() == services.registry.name() {
            tasks.readiness().register(name.clone(), is_ready);
        } else {
            tasks.readiness().register_degrading(name.clone(), is_ready);
        }
        let watched = service.clone();
        tasks.spawn(Phase::Background, format!("{name}, circuit"), move |stop| watched.watch(stop));
    }
}
