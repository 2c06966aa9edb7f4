//! Wires the role together.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use assay_clients::{ClientError, RegistryClient, ScoringClient, ServiceClient, http_client};
use assay_messaging::Bus;
use assay_messaging::outbox::{self, Outbox};
use assay_platform::auth::{Audience, KeyRing, ServiceTokens};
use assay_platform::db::{self, Database, DatabaseError};
use assay_platform::objects::Objects;
use assay_platform::runtime::{Phase, Tasks, now};
use assay_platform::web::{ResponseBudget, ServiceAuth, serve};
use tokio::sync::Mutex;
use url::Url;

use crate::app::read_permits::ReadPermits;
use crate::app::refresh_days::{FailedDays, refresh_days};
use crate::app::run_maintenance::run_maintenance;
use crate::app::set_target_sequences::set_target_sequences;
use crate::consume::{
    ConversationEvaluatedHandler, EvaluationDeletedHandler, deletions_subscription, subscription,
};
use crate::http::{self, Services};
use crate::store::{DayCache, EvaluationStore, ExportStore, evaluation_store, export_store};
use crate::{Config, MIGRATIONS, SCHEMA};

/// Deadline for the target sequence; creating an export waits for it.
const SCORING_DEADLINE: Duration = Duration::from_secs(3);

/// Interval of setting targets of jobs that were created while scoring-worker was unreachable.
const TARGET_UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of refreshing the columns of stale days.
const DAY_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Memory for large responses that are being sent: lists, summaries and their texts.
const RESPONSE_MEMORY_BYTES: usize = 64 * 1024 * 1024;

/// Deadline for a page of retention periods.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// What the process provides to the role.
pub struct Dependencies {
    /// Already bound.
    pub listener: TcpListener,
    pub tokens: ServiceTokens,
    /// Keys of cursors and download URLs.
    pub signing_keys: KeyRing,
    pub bus: Bus,
    pub objects: Objects,
    pub scoring_url: Url,
    pub registry_url: Url,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("export cannot serve: {0}")]
    Listener(#[from] std::io::Error),
}

/// Migrates the schema; returns the names of the applied migrations.
///
/// # Errors
/// When the database cannot be reached or a migration fails; the next call continues.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    let database = Database::open(&config.database(), SCHEMA)?;
    let applied = database.migrate(MIGRATIONS).await?;
    export_store(&database).ensure_partitions(now()).await?;
    Ok(applied)
}

/// Starts the role's tasks. The role is not ready until the database and the bus are reachable.
///
/// # Errors
/// When the configuration cannot be used.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, signing_keys, bus, objects, scoring_url, registry_url } =
        dependencies;
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = export_store(&database);
    let clock = db::watch_clock(tasks, SCHEMA, &database);
    let outbox = Outbox::new(database.clone());

    db::register_readiness(tasks.readiness(), SCHEMA, &database, MIGRATIONS);
    let age_limit = config.outbox_age_limit();
    assay_messaging::register_producer_readiness(tasks.readiness(), SCHEMA, &bus, &outbox, age_limit);

    spawn_consumers(tasks, config, &store, &bus);
    let relay_outbox = outbox.clone();
    tasks.spawn(Phase::Background, "export outbox", move |stop| outbox::relay(relay_outbox, bus, stop));

    let http = http_client()?;
    let registry = ServiceClient::new(
        http.clone(),
        registry_url,
        Audience::AgentRegistry,
        tokens.clone(),
        REGISTRY_DEADLINE,
    );
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    spawn_maintenance(
        tasks,
        interval,
        (store.clone(), clock),
        objects.clone(),
        RegistryClient::new(registry),
    );
    let scoring = ServiceClient::new(http, scoring_url, Audience::Scoring, tokens.clone(), SCORING_DEADLINE);
    let watched_client = scoring.clone();
    tasks
        .spawn(Phase::Background, "export circuit of scoring-worker", move |stop| watched_client.watch(stop));
    let scoring = ScoringClient::new(scoring);
    spawn_target_updates(tasks, store.clone(), scoring.clone());
    let evaluations = evaluation_store(&database);
    spawn_day_refresh(tasks, evaluations.clone());
    let days = Arc::new(DayCache::new(config.day_cache_bytes));
    let (downloads, max_open_exports) = (config.downloads(), config.max_open_exports);
    let services = Data::new(Services {
        store,
        evaluations,
        days,
        read_permits: ReadPermits::default(),
        outbox,
        keys: signing_keys,
        objects,
        downloads,
        response_budget: ResponseBudget::new(RESPONSE_MEMORY_BYTES),
        max_open_exports,
        scoring,
    });
    let auth = ServiceAuth { tokens, audience: Audience::Export };
    serve(tasks, Phase::ServeInternal, "export", listener, config.server(), move |app| {
        http::configure(app, services.clone(), auth.clone());
    })?;
    Ok(())
}

fn spawn_consumers(tasks: &mut Tasks, config: &Config, store: &ExportStore, bus: &Bus) {
    let handler = Arc::new(ConversationEvaluatedHandler { store: store.clone() });
    let subscription = subscription(config.batch_size, config.max_in_flight);
    assay_messaging::register_handling_readiness(tasks.readiness(), SCHEMA, bus, subscription.queue);
    let consumer_bus = bus.clone();
    tasks.spawn(Phase::Consume, "export consumer", move |stop| async move {
        consumer_bus.consume(subscription, handler, stop).await
    });
    let handler = Arc::new(EvaluationDeletedHandler { store: store.clone() });
    let deletions = deletions_subscription(config.batch_size, config.max_in_flight);
    let consumer_bus = bus.clone();
    tasks.spawn(Phase::Consume, "export consumer of deletions", move |stop| async move {
        consumer_bus.consume(deletions, handler, stop).await
    });
}

fn spawn_target_updates(tasks: &mut Tasks, store: ExportStore, scoring: ScoringClient) {
    tasks.spawn_periodic(
        Phase::Background,
        "export target sequences",
        TARGET_UPDATE_INTERVAL,
        (store, scoring),
        |(store, scoring)| async move { set_target_sequences(&store, &scoring).await },
    );
}

fn spawn_day_refresh(tasks: &mut Tasks, store: EvaluationStore) {
    tasks.spawn_periodic(
        Phase::Background,
        "export days",
        DAY_REFRESH_INTERVAL,
        (store, Arc::new(Mutex::new(FailedDays::default()))),
        |(store, failed)| async move { refresh_days(&store, &mut *failed.lock().await, now()).await },
    );
}

fn spawn_maintenance(
    tasks: &mut Tasks,
    interval: Duration,
    (store, clock): (ExportStore, db::Clock),
    objects: Objects,
    registry: RegistryClient,
) {
    tasks.spawn_periodic(
        Phase::Background,
        "export maintenance",
        interval,
        (store, clock, objects, registry),
        |(store, clock, objects, registry)| async move {
            clock.verify().await?;
            run_maintenance(&store, &objects, &registry, now()).await
        },
    );
}
