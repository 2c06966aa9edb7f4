//! Wires the role together.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use assay_clients::{ClientError, RegistryClient, ServiceClient, http_client};
use assay_contracts::retention::InvalidRetentionPeriod;
use assay_export::store::{Notifications, WorkStore, work_store};
use assay_messaging::Bus;
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::db::{self, Clock, Database, DatabaseError};
use assay_platform::objects::Objects;
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{ServerSettings, serve};
use tokio::sync::Notify;
use url::Url;

use crate::app::{Worker, run_maintenance, run_slot, sweep};
use crate::consume::{ExportRequestedHandler, subscription};
use crate::metrics;
use crate::{Config, MIGRATIONS, SCHEMA};

/// Connections for lease renewals and readiness, in addition to one for each parallel job.
const SPARE_CONNECTIONS: u32 = 2;

/// Deadline for a page of retention periods.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// Additional slots, for jobs that wait for the read model. One organization may occupy half of all slots: its waiting jobs must
/// not block the others.
const WAITING_JOBS: u32 = 16;

/// What the process provides to the role.
pub struct Dependencies {
    /// Listener of the health endpoints; already bound.
    pub listener: TcpListener,
    pub bus: Bus,
    pub objects: Objects,
    pub tokens: ServiceTokens,
    pub registry_url: Url,
    pub notifications: Notifications,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("export-worker cannot serve: {0}")]
    Listener(#[from] std::io::Error),
    #[error(
        "export_worker.database_pool_size must be at least export_worker.parallel_jobs + {SPARE_CONNECTIONS}, \
         and export_worker.parallel_jobs, lease_milliseconds, poll_interval_milliseconds and max_attempts at least 1"
    )]
    Settings,
    #[error("export_worker.file_retention_days: {0}")]
    RetentionPeriod(#[from] InvalidRetentionPeriod),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Starts the role's tasks. The role is not ready until the database and the bus are reachable.
///
/// # Errors
/// When the configuration cannot be used.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, bus, objects, tokens, registry_url, notifications } = dependencies;
    check(config)?;
    metrics::describe();
    let database = Database::open(&config.database(), SCHEMA)?;
    register_readiness(tasks, &database, &bus);

    let store = work_store(&database, notifications);
    let clock = db::watch_clock(tasks, "export-worker", &database);
    let http = http_client()?;
    let registry = ServiceClient::new(http, registry_url, Audience::AgentRegistry, tokens, REGISTRY_DEADLINE);
    spawn_maintenance(
        tasks,
        config,
        (store.clone(), clock.clone()),
        objects.clone(),
        RegistryClient::new(registry),
    )?;
    let (parallel, waiting) = (config.parallel_jobs as usize, WAITING_JOBS as usize);
    let worker = Arc::new(Worker::new(store, objects, config.worker_settings()?, parallel, waiting));
    let wakeup = Arc::new(Notify::new());
    for slot in 1..=config.parallel_jobs + WAITING_JOBS {
        let (worker, clock, wakeup) = (worker.clone(), clock.clone(), wakeup.clone());
        tasks.spawn(Phase::Consume, format!("export worker slot {slot}"), move |stop| {
            run_slot(worker, clock, wakeup, stop)
        });
    }
    let handler = Arc::new(ExportRequestedHandler { wakeup });
    tasks.spawn(Phase::Consume, "export worker consumer", move |stop| async move {
        bus.consume(subscription(), handler, stop).await
    });
    serve(tasks, Phase::ServeInternal, "export-worker", listener, ServerSettings::default(), |_| ())?;
    Ok(())
}

/// Applies retention periods and removes left-over files. Two tasks, because a failed run is repeated soon, and listing a
/// large store again is expensive.
fn spawn_maintenance(
    tasks: &mut Tasks,
    config: &Config,
    (store, clock): (WorkStore, Clock),
    objects: Objects,
    registry: RegistryClient,
) -> Result<(), InvalidRetentionPeriod> {
    let (retention, grace_millis) = (config.file_retention()?, config.sweep_grace_millis());
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    tasks.spawn_periodic(
        Phase::Background,
        "export-worker maintenance",
        interval,
        (store.clone(), clock.clone(), registry),
        move |(store, clock, registry)| async move {
            clock.verify().await?;
            run_maintenance(&store, &registry, retention).await
        },
    );
    tasks.spawn_periodic(
        Phase::Background,
        "export-worker sweep",
        interval,
        (store, clock, objects),
        move |(store, clock, objects)| async move {
            clock.verify().await?;
            sweep(&store, &objects, grace_millis).await;
            Ok::<_, DatabaseError>(())
        },
    );
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
