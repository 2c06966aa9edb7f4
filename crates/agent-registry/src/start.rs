//! Starts the role: the only place that knows all of its parts.

use std::net::TcpListener;
use std::time::Duration;

use actix_web::web::Data;
use assay_contracts::retention::InvalidRetentionPeriod;
use assay_messaging::Bus;
use assay_messaging::outbox::{self, Outbox};
use assay_platform::auth::{ApiKey, Audience, ServiceTokens};
use assay_platform::db::{Database, DatabaseError, watch_clock};
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{BodyBudget, ServerSettings, ServiceAuth, serve};
use tokio::sync::watch;

use crate::app::bootstrap::bootstrap_until_done;
use crate::app::record_key_use::{key_uses, record_key_uses};
use crate::app::run_maintenance::run_maintenance;
use crate::domain::{InvalidName, OrganizationName};
use crate::http::{self, Services};
use crate::{Config, MIGRATIONS, SCHEMA, store};

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Memory of all bodies that services send at a time.
const BODY_MEMORY_BYTES: usize = 16 * 1024 * 1024;

/// What the process provides to the role.
pub struct Dependencies {
    /// Already bound.
    pub listener: TcpListener,
    pub tokens: ServiceTokens,
    pub bus: Bus,
    /// The first API key of the installation, and the name of its organization.
    pub bootstrap: Option<(ApiKey, String)>,
}

/// Why the role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("agent-registry cannot serve: {0}")]
    Listener(#[from] std::io::Error),
    #[error("bootstrap_organization: {0}")]
    Organization(#[from] InvalidName),
    #[error("registry.transcript_retention_days or evaluation_retention_days: {0}")]
    RetentionPeriod(#[from] InvalidRetentionPeriod),
}

/// Applies the pending migrations and returns their names.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    let database = Database::open(&config.database(), SCHEMA)?;
    database.migrate(MIGRATIONS).await
}

/// Starts the role's tasks. The database and the bus may come up later; until then the role is not ready.
///
/// # Errors
/// When the configuration cannot be used.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, bus, bootstrap } = dependencies;
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = store::open(&database);
    let outbox = Outbox::new(database.clone());
    let (key_uses, pending_uses) = key_uses();

    register_checks(config, tasks, &database, &bus, &outbox);
    let clock = watch_clock(tasks, SCHEMA, &database);
    if let Some((key, organization)) = bootstrap {
        start_bootstrap(tasks, database, key, OrganizationName::parse(&organization)?);
    }
    let relayed = outbox.clone();
    tasks.spawn(Phase::Background, "agent-registry relay", move |stop| outbox::relay(relayed, bus, stop));
    let recorded = store.clone();
    tasks.spawn(Phase::Background, "agent-registry key uses", move |stop| {
        record_key_uses(recorded, pending_uses, stop)
    });
    let (maintained, session_limits) = ((store.clone(), clock), config.session_limits());
    tasks.spawn_periodic(
        Phase::Background,
        "agent-registry maintenance",
        MAINTENANCE_INTERVAL,
        maintained,
        move |(store, clock)| async move {
            clock.verify().await?;
            run_maintenance(&store, session_limits).await
        },
    );

    let services = Data::new(Services {
        store,
        outbox,
        key_uses,
        default_retention: config.default_retention()?,
        session_limits,
        body_budget: BodyBudget::new(BODY_MEMORY_BYTES),
    });
    let auth = ServiceAuth { tokens, audience: Audience::AgentRegistry };
    serve(tasks, Phase::ServeInternal, "agent-registry", listener, ServerSettings::default(), move |app| {
        http::configure(app, services.clone(), auth.clone());
    })?;
    Ok(())
}

fn start_bootstrap(tasks: &mut Tasks, database: Database, key: ApiKey, organization: OrganizationName) {
    let (done, is_done) = watch::channel(false);
    tasks.readiness().register("registry bootstrap", move || {
        let is_done = *is_done.borrow();
        async move { if is_done { Ok(()) } else { Err("the bootstrap API key is not stored yet".to_owned()) } }
    });
    tasks.spawn(Phase::Background, "agent-registry bootstrap", move |stop| {
        bootstrap_until_done(database, key, organization, done, stop)
    });
}

fn register_checks(config: &Config, tasks: &Tasks, database: &Database, bus: &Bus, outbox: &Outbox) {
    let readiness = tasks.readiness();
    assay_platform::db::register_readiness(readiness, SCHEMA, database, MIGRATIONS);
    let max_age = Duration::from_secs(config.outbox_age_limit_seconds);
    assay_messaging::register_producer_readiness(readiness, SCHEMA, bus, outbox, max_age);
}
