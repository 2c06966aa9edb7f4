//! Wires the role together.

use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use assay_clients::{
    ClientError, HttpClient, IngestClient, RegistryClient, ServiceClient, WebhooksClient, http_client,
};
use assay_judge::{Judge, JudgeConfigError};
use assay_messaging::outbox::{self, Outbox};
use assay_messaging::parking::{ParkedWork, Parking};
use assay_messaging::{Bus, Subscription};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::db::{Clock, Database, DatabaseError, watch_clock};
use assay_platform::runtime::{BackgroundThreads, Phase, Tasks, now, timeout};
use assay_platform::web::{ServerSettings, ServiceAuth, serve};
use assay_scoring::{Scorer, ScorerError};
use futures_util::future::join;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::app::{EvaluateConversations, JudgeConversations, WebhookSubscribers, run_maintenance};
use crate::config::Config;
use crate::consume::{
    ConversationAcceptedHandler, ConversationDeletedHandler, ConversationsExpiredHandler, PARKED_QUEUE,
    accepted_subscription, deleted_subscription, expired_subscription,
};
use crate::http::configure;
use crate::metrics;
use crate::store::{self, EvaluationStore};
use crate::{MIGRATIONS, SCHEMA};

/// Pause between attempts to create the partitions at startup.
const PARTITIONS_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Conversations evaluated together, for each processor.
const CONVERSATIONS_PER_PROCESSOR: usize = 2;
/// Conversations evaluated together at least, however few processors there are.
const MIN_CONVERSATIONS: usize = 4;

/// Deadline for a page of retention periods.
const REGISTRY_DEADLINE: Duration = Duration::from_secs(10);

/// Deadline for a page of subscribers.
const WEBHOOKS_DEADLINE: Duration = Duration::from_secs(5);

/// What the process provides to the role.
pub struct Dependencies {
    /// Already bound.
    pub listener: TcpListener,
    pub tokens: ServiceTokens,
    pub bus: Bus,
    pub ingest_url: Url,
    pub registry_url: Url,
    /// `None` when the installation has no webhooks.
    pub webhooks_url: Option<Url>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    #[error(transparent)]
    Judge(#[from] JudgeConfigError),
    #[error("{setting}: cannot read {path}: {cause}")]
    ScorerFile { setting: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("{setting}, {path}: {cause}")]
    InvalidScorerFile { setting: &'static str, path: PathBuf, cause: ScorerError },
    #[error("scoring-worker cannot start the threads of its scorer: {0}")]
    Threads(std::io::Error),
    #[error("scoring-worker cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// Migrates the schema; returns the names of the applied migrations.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    let database = Database::open(&config.database(), SCHEMA)?;
    let applied = database.migrate(MIGRATIONS).await?;
    store::open(&database).maintain_partitions(now()).await?;
    Ok(applied)
}

/// Starts the role's tasks.
///
/// # Errors
/// When the configuration cannot be used. An unreachable database or bus is not an error: the role waits for it.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, bus, ingest_url, registry_url, webhooks_url } = dependencies;
    metrics::describe();
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = store::open(&database);
    let clock = watch_clock(tasks, SCHEMA, &database);
    let outbox = Outbox::new(database.clone());
    let deadline = Duration::from_millis(config.ingest_deadline_milliseconds);
    let http = http_client()?;
    let ingest = IngestClient::new(ServiceClient::new(
        http.clone(),
        ingest_url,
        Audience::Ingest,
        tokens.clone(),
        deadline,
    ));
    let subscribers = poll_subscribers(config, tasks, http.clone(), webhooks_url, &tokens);
    let registry =
        ServiceClient::new(http, registry_url, Audience::AgentRegistry, tokens.clone(), REGISTRY_DEADLINE);
    let scorer = Arc::new(scorer(&config.model, &config.weights)?.with_policy(config.policy()));
    let threads = BackgroundThreads::new("scorer", processors()).map_err(StartError::Threads)?;
    let judge = Judge::open(&config.judge)?;
    let subscription = accepted_subscription(config.batch_size, config.max_in_flight);
    let parking = Parking::new(database.clone(), chunk_sizes(config, judge.as_ref()));
    let judging = judge.map(|judge| {
        let stop = tasks.stop_token(Phase::Consume);
        Arc::new(JudgeConversations { judge, scorer: scorer.clone(), store: store.clone(), stop })
    });
    let evaluate = EvaluateConversations {
        ingest,
        store: store.clone(),
        outbox: outbox.clone(),
        scorer,
        background: Some(threads),
        judging,
        subscribers: subscribers.clone(),
    };
    let priority = EvaluateConversations { background: None, ..evaluate.clone() };
    let handler = Arc::new(ConversationAcceptedHandler { evaluate });
    let priority_handler = Arc::new(ConversationAcceptedHandler { evaluate: priority });

    register_checks(config, tasks, &database, (&bus, subscription.queue), &outbox);
    let (queue, outbox_of_work, bus_of_work) = (PARKED_QUEUE, outbox.clone(), bus.clone());
    let work = ParkedWork { queue, handler, priority_handler, outbox: outbox_of_work, bus: bus_of_work };
    spawn_evaluation(tasks, store.clone(), parking, work, subscription);
    spawn_removal_consumers(config, tasks, (&store, &subscribers), &bus, &outbox);
    tasks.spawn(Phase::Background, "scoring-worker relay", move |stop| outbox::relay(outbox, bus, stop));
    spawn_maintenance(config, tasks, (store.clone(), clock), RegistryClient::new(registry));
    let auth = ServiceAuth { tokens, audience: Audience::Scoring };
    let routes = configure(store, auth);
    serve(tasks, Phase::ServeInternal, "scoring-worker", listener, ServerSettings::default(), routes)?;
    Ok(())
}

fn processors() -> NonZeroUsize {
    available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// How many conversations are evaluated together: at least so many that each processor is busy while results are stored (with a judge, the
/// number of its concurrent calls), and more where evaluations are quick.
fn chunk_sizes(config: &Config, judge: Option<&Judge>) -> RangeInclusive<usize> {
    let of_processors = (CONVERSATIONS_PER_PROCESSOR * processors().get()).max(MIN_CONVERSATIONS);
    let smallest = judge.map_or(of_processors, Judge::concurrency).min(config.batch_size);
    smallest..=config.batch_size
}

/// Evaluates accepted conversations: deliveries of the bus, and parked ones, for which organizations take turns.
fn spawn_evaluation(
    tasks: &mut Tasks,
    store: EvaluationStore,
    parking: Parking,
    work: ParkedWork,
    subscription: Subscription,
) {
    tasks.spawn(Phase::Consume, "scoring-worker consumer", move |stop| async move {
        if prepare_partitions(&store, &stop).await {
            let (bus, handler) = (work.bus.clone(), parking.in_front_of(work.handler.clone()));
            join(bus.consume(subscription, handler, stop.clone()), parking.work(work, stop)).await;
        }
    });
}

/// Consumers of deletions and expiries.
fn spawn_removal_consumers(
    config: &Config,
    tasks: &mut Tasks,
    (store, subscribers): (&EvaluationStore, &WebhookSubscribers),
    bus: &Bus,
    outbox: &Outbox,
) {
    let handler = Arc::new(ConversationDeletedHandler {
        store: store.clone(),
        outbox: outbox.clone(),
        subscribers: subscribers.clone(),
    });
    let subscription = deleted_subscription(config.batch_size, config.max_in_flight);
    let bus_of_deletions = bus.clone();
    tasks.spawn(Phase::Consume, "scoring-worker consumer of deletions", move |stop| async move {
        bus_of_deletions.consume(subscription, handler, stop).await
    });
    let handler = Arc::new(ConversationsExpiredHandler {
        store: store.clone(),
        outbox: outbox.clone(),
        subscribers: subscribers.clone(),
    });
    let bus_of_expiries = bus.clone();
    tasks.spawn(Phase::Consume, "scoring-worker consumer of expiries", move |stop| async move {
        bus_of_expiries.consume(expired_subscription(), handler, stop).await
    });
}

/// Polls webhooks for its subscribers.
fn poll_subscribers(
    config: &Config,
    tasks: &mut Tasks,
    http: HttpClient,
    webhooks_url: Option<Url>,
    tokens: &ServiceTokens,
) -> WebhookSubscribers {
    const NAME: &str = "scoring-worker webhook subscribers";
    let Some(url) = webhooks_url else { return WebhookSubscribers::new(None) };
    let service = ServiceClient::new(http, url, Audience::Webhooks, tokens.clone(), WEBHOOKS_DEADLINE);
    let subscribers = WebhookSubscribers::new(Some(WebhooksClient::new(service)));
    let interval = Duration::from_millis(config.subscribers_poll_interval_milliseconds.max(1));
    tasks.spawn_periodic(Phase::Background, NAME, interval, subscribers.clone(), |subscribers| async move {
        subscribers.refresh().await
    });
    subscribers
}

fn spawn_maintenance(
    config: &Config,
    tasks: &mut Tasks,
    (store, clock): (EvaluationStore, Clock),
    registry: RegistryClient,
) {
    const NAME: &str = "scoring-worker maintenance";
    let interval = Duration::from_secs(config.maintenance_interval_seconds.max(1));
    let state = (store, clock, registry);
    tasks.spawn_periodic(Phase::Background, NAME, interval, state, |(store, clock, registry)| async move {
        clock.verify().await?;
        run_maintenance(&store, &registry).await
    });
}

/// The scorer with the model and the weights of these files; with the shipped ones where a path is empty.
fn scorer(model: &Path, weights: &Path) -> Result<Scorer, StartError> {
    let scorer = match read_file("scoring.model", model)? {
        None => Scorer::builtin()?,
        Some(content) => {
            Scorer::with_model(&content).map_err(|cause| invalid("scoring.model", model, cause))?
        }
    };
    match read_file("scoring.weights", weights)? {
        None => Ok(scorer),
        Some(content) => scorer
            .with_weights(&String::from_utf8_lossy(&content))
            .map_err(|cause| invalid("scoring.weights", weights, cause)),
    }
}

fn read_file(setting: &'static str, path: &Path) -> Result<Option<Vec<u8>>, StartError> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let failed = |cause| StartError::ScorerFile { setting, path: path.to_owned(), cause };
    std::fs::read(path).map(Some).map_err(failed)
}

fn invalid(setting: &'static str, path: &Path, cause: ScorerError) -> StartError {
    StartError::InvalidScorerFile { setting, path: path.to_owned(), cause }
}

fn register_checks(
    config: &Config,
    tasks: &Tasks,
    database: &Database,
    (bus, queue): (&Bus, &'static str),
    outbox: &Outbox,
) {
    let readiness = tasks.readiness();
    assay_platform::db::register_readiness(readiness, SCHEMA, database, MIGRATIONS);
    let max_age = Duration::from_secs(config.outbox_age_limit_seconds);
    assay_messaging::register_consumer_readiness(readiness, SCHEMA, bus, queue);
    assay_messaging::register_parking_readiness(readiness, SCHEMA, bus, PARKED_QUEUE);
    assay_messaging::register_outbox_readiness(readiness, SCHEMA, outbox, max_age);
}

/// Creates the partitions before the first evaluation, because rows in the default partition have to be moved later. False
/// when the process stops first.
async fn prepare_partitions(store: &EvaluationStore, stop: &CancellationToken) -> bool {
    while let Err(error) = store.prepare_partitions(now()).await {
        tracing::warn!(cause = %error, "partitions cannot be created, evaluation has not started: trying again");
        if timeout(PARTITIONS_RETRY_DELAY, stop.cancelled()).await.is_some() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use assay_scoring::{LinearModel, WEIGHTS_FORMAT};

    use super::*;

    const SHIPPED: &str = "";

    fn refusal(model: &str, weights: &str) -> String {
        scorer(Path::new(model), Path::new(weights)).unwrap_err().to_string()
    }

    #[test]
    fn empty_paths_use_the_shipped_model_and_weights() {
        let shipped = scorer(Path::new(SHIPPED), Path::new(SHIPPED)).unwrap();
        assert_eq!(shipped.weights_sha256(), Scorer::builtin().unwrap().weights_sha256());
    }

    #[test]
    fn unusable_file_is_refused_with_setting_and_path() {
        let missing = refusal(SHIPPED, "/nowhere/weights.json");
        assert!(missing.starts_with("scoring.weights: cannot read /nowhere/weights.json: "), "{missing}");
        let missing = refusal("/nowhere/reader.bin", SHIPPED);
        assert!(missing.starts_with("scoring.model: cannot read /nowhere/reader.bin: "), "{missing}");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let unfit = refusal(SHIPPED, file);
        let begins = format!("scoring.weights, {file}: ");
        assert!(unfit.starts_with(&begins) && unfit.contains("assay fit"), "{unfit}");
        let unfit = refusal(file, SHIPPED);
        let begins = format!("scoring.model, {file}: ");
        assert!(unfit.starts_with(&begins) && unfit.contains("model"), "{unfit}");
    }

    #[test]
    fn model_file_and_weights_file_are_loaded() {
        let builtin = Scorer::builtin().unwrap();
        let keeping = |index| serde_json::to_value(LinearModel::identity(index)).unwrap();
        let weights = serde_json::json!({
            "format": WEIGHTS_FORMAT, "reader_sha256": builtin.reader_sha256(), "conversations": 25,
            "resolution_accuracy": keeping(0), "interaction_effort": keeping(1), "handoff_smoothness": keeping(2),
        });
        let file = std::env::temp_dir().join(format!("assay-weights-{}.json", std::process::id()));
        std::fs::write(&file, weights.to_string()).unwrap();
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../scoring/model/reader.bin");
        let fitted = scorer(Path::new(model), &file);
        std::fs::remove_file(&file).unwrap();
        let fitted = fitted.unwrap();
        assert_eq!(fitted.reader_sha256(), builtin.reader_sha256());
        assert_ne!(fitted.weights_sha256(), builtin.weights_sha256());
    }
}
