//! Runs one role as its own process: in a container, or under `make stack`.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use assay_export_worker::Notifications;
use assay_messaging::Bus;
use assay_platform::runtime::{Readiness, Tasks};
use assay_platform::telemetry;
use assay_platform::web::serve_metrics;

use crate::exit;
use crate::freed_memory;
use crate::open_files;
use crate::settings::Settings;
use crate::signals::StopSignals;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Gateway,
    Ingest,
    AgentRegistry,
    ScoringWorker,
    Export,
    ExportWorker,
    Webhooks,
    Console,
}

impl Role {
    /// In traces.
    const fn service_name(self) -> &'static str {
        match self {
            Self::Gateway => "assay-gateway",
            Self::Ingest => "assay-ingest",
            Self::AgentRegistry => "assay-agent-registry",
            Self::ScoringWorker => "assay-scoring-worker",
            Self::Export => "assay-export",
            Self::ExportWorker => "assay-export-worker",
            Self::Webhooks => "assay-webhooks",
            Self::Console => "assay-console",
        }
    }

    fn listen_address(self, settings: &Settings) -> SocketAddr {
        match self {
            Self::Gateway => settings.gateway.listen,
            Self::Ingest => settings.ingest.listen,
            Self::AgentRegistry => settings.registry.listen,
            Self::ScoringWorker => settings.scoring.listen,
            Self::Export => settings.export.listen,
            Self::ExportWorker => settings.export_worker.listen,
            Self::Webhooks => settings.webhooks.listen,
            Self::Console => settings.console.listen,
        }
    }
}

/// Runs a role until a stop signal.
pub async fn run(role: Role) -> Result<()> {
    let settings = Settings::load()?;
    let mut telemetry = telemetry::start(&settings.telemetry, role.service_name())?;
    open_files::raise_fd_limit();
    let mut tasks = Tasks::new(Readiness::default());
    bind(role.listen_address(&settings))
        .and_then(|listener| start(role, &settings, listener, || open_bus(&settings), &mut tasks))
        .with_context(|| format!("{role:?} cannot start"))?;
    serve_metrics(&mut tasks, &mut telemetry)?;
    tracing::info!(?role, version = env!("CARGO_PKG_VERSION"), "started");
    let result = run_until_stopped(tasks, &settings).await;
    telemetry.shutdown().await;
    result
}

/// Runs the tasks until a signal or a failure; a second signal exits immediately.
pub async fn run_until_stopped(mut tasks: Tasks, settings: &Settings) -> Result<()> {
    freed_memory::spawn_task(&mut tasks);
    // Every listener receives every signal.
    let mut first_signal = StopSignals::listen()?;
    let mut signals = StopSignals::listen()?;
    let stop = async move {
        first_signal.next().await;
        tracing::info!("stopping; a second signal ends the process at once");
    };
    tokio::select! {
        result = tasks.run(stop, settings.shutdown_budgets()) => Ok(result?),
        () = async { signals.next().await; signals.next().await } => {
            tracing::warn!("ended at once by a second signal");
            std::process::exit(exit::INTERRUPTED.into());
        }
    }
}

/// Starts the tasks of a role. Calls `bus` only for a role that uses the bus.
pub fn start(
    role: Role,
    settings: &Settings,
    listener: TcpListener,
    bus: impl FnOnce() -> Result<Bus>,
    tasks: &mut Tasks,
) -> Result<()> {
    match role {
        Role::Gateway => start_gateway(settings, listener, tasks),
        Role::AgentRegistry => start_registry(settings, listener, bus()?, tasks),
        Role::Ingest => start_ingest(settings, listener, bus()?, tasks),
        Role::ScoringWorker => start_scoring(settings, listener, bus()?, tasks),
        Role::Export => start_export(settings, listener, bus()?, tasks),
        Role::ExportWorker => start_export_worker(settings, listener, bus()?, tasks),
        Role::Webhooks => start_webhooks(settings, listener, bus()?, tasks),
        Role::Console => start_console(settings, listener, tasks),
    }
}

/// Binds an address. The error names the usual cause: a port in use.
pub fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .with_context(|| format!("cannot listen on {address}: is another process using the port?"))
}

pub fn open_bus(settings: &Settings) -> Result<Bus> {
    Ok(Bus::open(&settings.bus)?)
}

fn start_gateway(settings: &Settings, listener: TcpListener, tasks: &mut Tasks) -> Result<()> {
    open_files::warn_if_below(settings.gateway.max_connections);
    let services = &settings.services;
    let dependencies = assay_gateway::Dependencies {
        listener,
        tokens: settings.tokens()?,
        registry_url: services.registry_url.clone(),
        ingest_url: services.ingest_url.clone(),
        scoring_url: services.scoring_url.clone(),
        export_url: services.export_url.clone(),
        webhooks_url: settings.webhooks_url()?,
        console_url: settings.console_url()?,
    };
    Ok(assay_gateway::start(&settings.gateway, dependencies, tasks)?)
}

fn start_registry(settings: &Settings, listener: TcpListener, bus: Bus, tasks: &mut Tasks) -> Result<()> {
    let dependencies = assay_agent_registry::Dependencies {
        listener,
        tokens: settings.tokens()?,
        bus,
        bootstrap: settings.bootstrap()?,
    };
    Ok(assay_agent_registry::start(&settings.registry, dependencies, tasks)?)
}

fn start_scoring(settings: &Settings, listener: TcpListener, bus: Bus, tasks: &mut Tasks) -> Result<()> {
    let dependencies = assay_scoring_worker::Dependencies {
        listener,
        tokens: settings.tokens()?,
        bus,
        ingest_url: settings.services.ingest_url.clone(),
        registry_url: settings.services.registry_url.clone(),
        webhooks_url: settings.webhooks_url()?,
    };
    Ok(assay_scoring_worker::start(&settings.scoring, dependencies, tasks)?)
}

fn start_ingest(settings: &Settings, listener: TcpListener, bus: Bus, tasks: &mut Tasks) -> Result<()> {
    let registry_url = settings.services.registry_url.clone();
    let dependencies = assay_ingest::Dependencies { listener, tokens: settings.tokens()?, bus, registry_url };
    Ok(assay_ingest::start(&settings.ingest, dependencies, tasks)?)
}

fn start_export(settings: &Settings, listener: TcpListener, bus: Bus, tasks: &mut Tasks) -> Result<()> {
    let dependencies = assay_export::Dependencies {
        listener,
        tokens: settings.tokens()?,
        signing_keys: settings.signing_keys()?,
        bus,
        objects: settings.open_objects()?,
        scoring_url: settings.services.scoring_url.clone(),
        registry_url: settings.services.registry_url.clone(),
    };
    Ok(assay_export::start(&settings.export, dependencies, tasks)?)
}

fn start_export_worker(
    settings: &Settings,
    listener: TcpListener,
    bus: Bus,
    tasks: &mut Tasks,
) -> Result<()> {
    let notifications =
        if settings.webhooks_url()?.is_some() { Notifications::On } else { Notifications::Off };
    let dependencies = assay_export_worker::Dependencies {
        listener,
        bus,
        objects: settings.open_objects()?,
        tokens: settings.tokens()?,
        registry_url: settings.services.registry_url.clone(),
        notifications,
    };
    Ok(assay_export_worker::start(&settings.export_worker, dependencies, tasks)?)
}

fn start_webhooks(settings: &Settings, listener: TcpListener, bus: Bus, tasks: &mut Tasks) -> Result<()> {
    let dependencies = assay_webhooks::Dependencies {
        listener,
        tokens: settings.tokens()?,
        signing_keys: settings.signing_keys()?,
        bus,
    };
    Ok(assay_webhooks::start(&settings.webhooks, dependencies, tasks)?)
}

fn start_console(settings: &Settings, listener: TcpListener, tasks: &mut Tasks) -> Result<()> {
    let services = &settings.services;
    let dependencies = assay_console::Dependencies {
        listener,
        tokens: settings.tokens()?,
        registry_url: services.registry_url.clone(),
        ingest_url: services.ingest_url.clone(),
        scoring_url: services.scoring_url.clone(),
        export_url: services.export_url.clone(),
        webhooks_url: settings.webhooks_url()?,
    };
    Ok(assay_console::start(&settings.console, dependencies, tasks)?)
}
