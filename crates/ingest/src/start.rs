//! Starts the role; the only place that knows all of its parts.

use std::net::TcpListener;
use std::time::Duration;

use assay_clients::{ClientError, RegistryClient, ServiceClient, http_client};
use assay_messaging::Bus;
use assay_messaging::outbox::{self, Backlog, Outbox};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{Phase, Tasks, now};
use assay_platform::web::{BodyBudget, ResponseBudget, ServerSettings, ServiceAuth, serve};
use url::Url;

use crate::app::accept_conversation::Acceptance;
use crate::app::import_queue::ImportQueue;
use crate::app::resolve_agents::AgentDirectory;
use crate::app::run_maintenance::run_maintenance;
use crate::app::write_imports::{Writer, write_imports};
use crate::http::{Services, configure};
use crate::{Config, MIGRATIONS, SCHEMA, store};

/// Maximum bytes of the large responses that are being sent to clients. One has up to 4 MiB.
const RESPONSE_MEMORY_BYTES: usize = 128 * 1024 * 1024;

/// Dependencies that the process provides.
pub struct Dependencies {
    /// A bound listener.
    pub listener: TcpListener,
    /// Issues and verifies service tokens.
    pub tokens: ServiceTokens,
    /// Publishes the role's events.
    pub bus: Bus,
    /// Base URL of agent-registry.
    pub registry_url: Url,
}

/// The role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database URL is invalid.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listener cannot be used.
    #[error("ingest cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// Applies pending migrations; returns their names.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    let database = Database::open(&config.database(), SCHEMA)?;
    let applied = database.migrate(MIGRATIONS).await?;
    store::open(&database).maintain_partitions(now()).await?;
    Ok(applied)
}

/// Starts the role's tasks. The database, the bus and agent-registry may come up later.
///
/// # Errors
/// [`StartError`].
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, bus, registry_url } = dependencies;
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = store::open(&database);
    let clock = assay_platform::db::watch_clock(tasks, SCHEMA, &database);
    let outbox = Outbox::new(database.clone());
    let linger = Duration::from_millis(config.linger_milliseconds);
    let queue = ImportQueue::new(config.accept_queue, linger);
    let registry = registry_client(config, registry_url, tokens.clone())?;
    let registry_service = registry.service().clone();
    tasks.spawn(Phase::Background, "ingest circuit of agent-registry", move |stop| {
        registry_service.watch(stop)
    });

    let backlog = Backlog::new(config.backlog_limits());
    register_checks(config, tasks, &database, &bus, &outbox);
    assay_messaging::register_backlog_readiness(tasks.readiness(), SCHEMA, &backlog);
    let (watched_backlog, watched_outbox) = (backlog.clone(), outbox.clone());
    tasks.spawn(Phase::Background, "ingest backlog", move |stop| watched_backlog.watch(watched_outbox, stop));
    for number in 1..=store.concurrent_writers(config.writers) {
        let (store, queue) = (store.clone(), queue.clone());
        let writer = Writer { store, queue, outbox: outbox.clone(), backlog: backlog.clone() };
        // Stopped after the server, which waits for the writers to answer the requests it has received.
        tasks.spawn(Phase::Background, format!("ingest writer {number}"), move |stop| {
            write_imports(writer, stop)
        });
    }
    let relayed = outbox.clone();
    tasks.spawn(Phase::Background, "ingest relay", move |stop| outbox::relay(relayed, bus, stop));
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    let maintained = (store.clone(), outbox.clone(), registry.clone(), clock);
    tasks.spawn_periodic(
        Phase::Background,
        "ingest maintenance",
        interval,
        maintained,
        |(store, outbox, registry, clock)| async move {
            clock.verify().await?;
            run_maintenance(&store, &outbox, &registry).await
        },
    );

    let acceptance = Acceptance {
        agents: AgentDirectory::new(registry, config.agent_cache_entries),
        queue,
        backlog,
        deadline: Duration::from_millis(config.accept_deadline_milliseconds),
    };
    let services = Services {
        store,
        outbox,
        acceptance,
        max_body_bytes: config.max_body_bytes,
        body_budget: BodyBudget::new(config.body_memory_bytes),
        response_budget: ResponseBudget::new(RESPONSE_MEMORY_BYTES),
    };
    let routes = configure(services, ServiceAuth { tokens, audience: Audience::Ingest });
    serve(tasks, Phase::ServeInternal, "ingest", listener, ServerSettings::default(), routes)?;
    Ok(())
}

fn registry_client(config: &Config, url: Url, tokens: ServiceTokens) -> Result<RegistryClient, ClientError> {
    let deadline = Duration::from_millis(config.registry_deadline_milliseconds);
    let http = http_client()?;
    Ok(RegistryClient::new(ServiceClient::new(http, url, Audience::AgentRegistry, tokens, deadline)))
}

fn register_checks(config: &Config, tasks: &Tasks, database: &Database, bus: &Bus, outbox: &Outbox) {
    let readiness = tasks.readiness();
    assay_platform::db::register_readiness(readiness, SCHEMA, database, MIGRATIONS);
    let max_age = Duration::from_secs(config.outbox_age_limit_seconds);
    assay_messaging::register_producer_readiness(readiness, SCHEMA, bus, outbox, max_age);
}
