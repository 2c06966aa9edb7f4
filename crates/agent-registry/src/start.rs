//! Starts the role: the only place that knows all of its parts.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::web::Data;
use assay_messaging::outbox::{self, Outbox};
use assay_messaging::{Bus, register_readiness};
use assay_platform::auth::{ApiKey, Audience, ServiceTokens};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{Phase, Readiness, Tasks};
use assay_platform::web::{ServerSettings, ServiceAuth, serve};
use tokio::sync::watch;

use crate::app::bootstrap::bootstrap_until_done;
use crate::app::prune::prune_hourly;
use crate::app::record_key_use::{key_uses, record_key_uses};
use crate::domain::{InvalidLabel, OrganizationName};
use crate::http::{self, Services};
use crate::{Config, MIGRATIONS, SCHEMA, store};

/// What the role needs from the process it runs in.
pub struct Dependencies {
    /// Where it serves; bound already.
    pub listener: TcpListener,
    /// Checks the tokens of calls.
    pub tokens: ServiceTokens,
    /// Where its events go.
    pub bus: Bus,
    /// The key that the installation starts with, and the name of its organization.
    pub bootstrap: Option<(ApiKey, String)>,
}

/// Why the role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database's address cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The listener cannot be used.
    #[error("agent-registry cannot serve: {0}")]
    Listener(#[from] std::io::Error),
    /// The organization of the bootstrap key has no usable name.
    #[error("bootstrap_organization: {0}")]
    Organization(#[from] InvalidLabel),
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
    let (key_uses, noted_uses) = key_uses();

    register_database_checks(tasks.readiness(), &database);
    register_readiness(tasks.readiness(), "registry", &bus, &outbox, config.outbox_age_limit());
    if let Some((key, organization)) = bootstrap {
        start_bootstrap(tasks, database, key, OrganizationName::parse(&organization)?);
    }
    let relayed = outbox.clone();
    tasks.spawn(Phase::Relay, "registry outbox", move |stop| outbox::relay(relayed, bus, stop));
    let pruned = Arc::clone(&store);
    tasks.spawn(Phase::Relay, "registry pruning", move |stop| prune_hourly(pruned, stop));
    let recorded = Arc::clone(&store);
    tasks.spawn(Phase::Relay, "registry key uses", move |stop| record_key_uses(recorded, noted_uses, stop));

    let services = Data::new(Services { store, outbox, key_uses });
    let auth = ServiceAuth { tokens, audience: Audience::AgentRegistry };
    serve(tasks, Phase::ServeInternal, "registry", listener, ServerSettings::default(), move |app| {
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
    tasks.spawn(Phase::Relay, "registry bootstrap", move |stop| {
        bootstrap_until_done(database, key, organization, done, stop)
    });
}

fn register_database_checks(readiness: &Readiness, database: &Database) {
    let checked = database.clone();
    readiness.register("registry database", move || {
        let database = checked.clone();
        async move { database.ping().await.map_err(|error| error.to_string()) }
    });
    let (checked, migrated) = (database.clone(), Arc::new(AtomicBool::new(false)));
    readiness.register("registry migrations", move || {
        let (database, migrated) = (checked.clone(), Arc::clone(&migrated));
        async move { check_migrations(&database, &migrated).await }
    });
}

/// Migrations that are applied stay applied, so they are looked for only until they are.
async fn check_migrations(database: &Database, migrated: &AtomicBool) -> Result<(), String> {
    if migrated.load(Ordering::Relaxed) {
        return Ok(());
    }
    let pending = database.pending_migrations(MIGRATIONS).await.map_err(|error| error.to_string())?;
    if !pending.is_empty() {
        return Err(format!("migrations are pending, run `assay migrate`: {}", pending.join(", ")));
    }
    migrated.store(true, Ordering::Relaxed);
    Ok(())
}
