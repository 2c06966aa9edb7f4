//! Starts the role: the only place that knows all of its parts.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use assay_clients::{ClientError, HttpSettings, RegistryClient, Service, http_client};
use assay_contracts::retention::InvalidPeriod;
use assay_export::store::{WorkStore, work_store};
use assay_messaging::Bus;
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::db::{self, Database, DatabaseError};
use assay_platform::objects::Objects;
use assay_platform::runtime::{Phase, Tasks, periodically};
use assay_platform::web::{ServerSettings, serve};
use tokio::sync::Notify;
use url::Url;

use crate::app::{Worker, set_file_periods, work_off_jobs};
use crate::consume::{ExportRequestedHandler, subscription};
use crate::metrics;
use crate::{Config, MIGRATIONS, SCHEMA};

/// Connections beside those that jobs read with: heartbeats and readiness.
const SPARE_CONNECTIONS: u32 = 2;

/// How long agent-registry may take to answer a page of periods.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// Jobs that may wait for their evaluations beside those whose files are written: one organization's wait must not hold up
/// the others.
const WAITING_JOBS: u32 = 16;

/// What the role needs from the process it runs in.
pub struct Dependencies {
    /// Where it answers whether it is alive and ready; bound already.
    pub listener: TcpListener,
    /// Where it hears of jobs.
    pub bus: Bus,
    /// Where the files go.
    pub objects: Objects,
    /// Makes tokens for calls.
    pub tokens: ServiceTokens,
    /// Where agent-registry listens.
    pub registry_url: Url,
}

/// Why the role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database's address cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The listener cannot be used.
    #[error("export-worker cannot serve: {0}")]
    Listener(#[from] std::io::Error),
    /// Jobs would wait for each other's connections.
    #[error(
        "export_worker.database_pool_size must be at least export_worker.parallel_jobs + {SPARE_CONNECTIONS}, \
         and export_worker.parallel_jobs, lease_milliseconds, poll_interval_milliseconds and max_attempts at least 1"
    )]
    Settings,
    /// The period of files is none.
    #[error("export_worker.file_retention_days: {0}")]
    Period(#[from] InvalidPeriod),
    /// No HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Starts the role's tasks. The database and the bus may come up later; until then the role is not ready.
///
/// # Errors
/// When the configuration cannot be used.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, bus, objects, tokens, registry_url } = dependencies;
    check(config)?;
    metrics::describe();
    let database = Database::open(&config.database(), SCHEMA)?;
    register_readiness(tasks, &database, &bus);

    let store = work_store(&database);
    let http = http_client(HttpSettings::default())?;
    let registry = Service::new(http, registry_url, Audience::AgentRegistry, tokens, REGISTRY_DEADLINE);
    spawn_maintenance(tasks, config, store.clone(), RegistryClient::new(registry))?;
    let parallel_jobs = config.parallel_jobs as usize;
    let worker = Arc::new(Worker::new(store, objects, config.work()?, parallel_jobs));
    let news = Arc::new(Notify::new());
    for slot in 1..=config.parallel_jobs + WAITING_JOBS {
        let (worker, news) = (worker.clone(), news.clone());
        tasks.spawn(Phase::Consume, format!("export worker slot {slot}"), move |stop| {
            work_off_jobs(worker, news, stop)
        });
    }
    let handler = Arc::new(ExportRequestedHandler { news });
    tasks.spawn(Phase::Consume, "export worker consumer", move |stop| async move {
        bus.consume(subscription(), handler, stop).await
    });
    serve(tasks, Phase::ServeInternal, "export-worker", listener, ServerSettings::default(), |_| ())?;
    Ok(())
}

fn spawn_maintenance(
    tasks: &mut Tasks,
    config: &Config,
    store: Arc<dyn WorkStore>,
    registry: RegistryClient,
) -> Result<(), InvalidPeriod> {
    const NAME: &str = "export-worker maintenance";
    let default = config.file_retention()?;
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    tasks.spawn(Phase::Relay, NAME, move |stop| {
        periodically(NAME, interval, stop, move || {
            let (store, registry) = (store.clone(), registry.clone());
            async move { set_file_periods(store.as_ref(), &registry, default).await }
        })
    });
    Ok(())
}

fn check(config: &Config) -> Result<(), StartError> {
    let positive = [
        config.parallel_jobs,
        config.lease_milliseconds,
        config.poll_interval_milliseconds,
        config.max_attempts,
    ];
    let connections = config.parallel_jobs.saturating_add(SPARE_CONNECTIONS);
    if positive.contains(&0) || config.database_pool_size < connections {
        return Err(StartError::Settings);
    }
    Ok(())
}

fn register_readiness(tasks: &Tasks, database: &Database, bus: &Bus) {
    db::register_readiness(tasks.readiness(), "export-worker", database, MIGRATIONS);
    let queue = subscription().queue;
    assay_messaging::register_consumer_readiness(tasks.readiness(), "export-worker", bus, queue);
}
