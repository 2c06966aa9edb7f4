//! Starts the role: the only place that knows all of its parts.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use assay_clients::{ClientError, HttpSettings, RegistryClient, ScoringClient, Service, http_client};
use assay_messaging::Bus;
use assay_messaging::outbox::{self, Outbox};
use assay_platform::auth::{Audience, ServiceTokens, SigningKeys};
use assay_platform::db::{self, Database, DatabaseError};
use assay_platform::objects::Objects;
use assay_platform::runtime::{Phase, Tasks, now, periodically};
use assay_platform::web::{ServerSettings, ServiceAuth, serve};
use url::Url;

use crate::app::count_evaluations::count_evaluations;
use crate::app::keep_house::keep_house;
use crate::consume::{
    ConversationEvaluatedHandler, EvaluationDeletedHandler, deletions_subscription, subscription,
};
use crate::http::{self, Services};
use crate::store::{ExportStore, export_store};
use crate::{Config, MIGRATIONS, SCHEMA};

/// How long scoring-worker may take to say how many evaluations there are: the creation of an export waits for it.
const SCORING_DEADLINE: Duration = Duration::from_secs(3);

/// How often jobs are looked for that were created while it did not answer.
const COUNTING_INTERVAL: Duration = Duration::from_secs(1);

/// How long agent-registry may take to answer a page of periods.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// What the role needs from the process it runs in.
pub struct Dependencies {
    /// Where it serves; bound already.
    pub listener: TcpListener,
    /// Checks the tokens of calls.
    pub tokens: ServiceTokens,
    /// Signs cursors and download addresses.
    pub signing_keys: SigningKeys,
    /// Where its events go and come from.
    pub bus: Bus,
    /// Where the files are.
    pub objects: Objects,
    /// Where scoring-worker listens.
    pub scoring_url: Url,
    /// Where agent-registry listens.
    pub registry_url: Url,
}

/// Why the role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database's address cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// No HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The listener cannot be used.
    #[error("export cannot serve: {0}")]
    Listener(#[from] std::io::Error),
}

/// Brings the schema up to date; the names of the migrations that were applied.
///
/// # Errors
/// When the database cannot be reached or a migration fails; the next call goes on where this one ended.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    let database = Database::open(&config.database(), SCHEMA)?;
    let applied = database.migrate(MIGRATIONS).await?;
    export_store(&database).ensure_partitions(now()).await?;
    Ok(applied)
}

/// Starts the role's tasks. The database and the bus may come up later; until then the role is not ready.
///
/// # Errors
/// When the configuration cannot be used.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, signing_keys, bus, objects, scoring_url, registry_url } =
        dependencies;
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = export_store(&database);
    let outbox = Outbox::new(database.clone());

    db::register_readiness(tasks.readiness(), SCHEMA, &database, MIGRATIONS);
    let age_limit = config.outbox_age_limit();
    assay_messaging::register_producer_readiness(tasks.readiness(), SCHEMA, &bus, &outbox, age_limit);

    let handler = Arc::new(ConversationEvaluatedHandler { store: store.clone() });
    let subscription = subscription(config.batch_size, config.max_in_flight);
    assay_messaging::register_handling_readiness(tasks.readiness(), SCHEMA, &bus, subscription.queue);
    let consumed = bus.clone();
    tasks.spawn(Phase::Consume, "export consumer", move |stop| async move {
        consumed.consume(subscription, handler, stop).await
    });
    let handler = Arc::new(EvaluationDeletedHandler { store: store.clone() });
    let deletions = deletions_subscription(config.batch_size, config.max_in_flight);
    let consumed = bus.clone();
    tasks.spawn(Phase::Consume, "export consumer of deletions", move |stop| async move {
        consumed.consume(deletions, handler, stop).await
    });
    let relayed = outbox.clone();
    tasks.spawn(Phase::Relay, "export outbox", move |stop| outbox::relay(relayed, bus, stop));

    let http = http_client(HttpSettings::default())?;
    let registry =
        Service::new(http.clone(), registry_url, Audience::AgentRegistry, tokens.clone(), REGISTRY_DEADLINE);
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    spawn_housekeeping(tasks, interval, store.clone(), objects.clone(), RegistryClient::new(registry));
    let scoring = Service::new(http, scoring_url, Audience::Scoring, tokens.clone(), SCORING_DEADLINE);
    let watched = scoring.clone();
    tasks.spawn(Phase::Relay, "export circuit of scoring-worker", move |stop| watched.watch(stop));
    let scoring = ScoringClient::new(scoring);
    spawn_counting(tasks, store.clone(), scoring.clone());
    let services = Data::new(Services { store, outbox, keys: signing_keys, objects, scoring });
    let auth = ServiceAuth { tokens, audience: Audience::Export };
    serve(tasks, Phase::ServeInternal, "export", listener, ServerSettings::default(), move |app| {
        http::configure(app, services.clone(), auth.clone());
    })?;
    Ok(())
}

fn spawn_counting(tasks: &mut Tasks, store: Arc<dyn ExportStore>, scoring: ScoringClient) {
    const NAME: &str = "export counting";
    tasks.spawn(Phase::Relay, NAME, move |stop| {
        periodically(NAME, COUNTING_INTERVAL, stop, move || {
            let (store, scoring) = (store.clone(), scoring.clone());
            async move { count_evaluations(store.as_ref(), &scoring).await }
        })
    });
}

fn spawn_housekeeping(
    tasks: &mut Tasks,
    interval: Duration,
    store: Arc<dyn ExportStore>,
    objects: Objects,
    registry: RegistryClient,
) {
    const NAME: &str = "export housekeeping";
    tasks.spawn(Phase::Relay, NAME, move |stop| {
        periodically(NAME, interval, stop, move || {
            let (store, objects, registry) = (store.clone(), objects.clone(), registry.clone());
            async move { keep_house(store.as_ref(), &objects, &registry, now()).await }
        })
    });
}
