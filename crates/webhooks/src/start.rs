//! Starts the role: the only place that knows all of its parts.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use assay_contracts::time::DAY_MILLIS;
use assay_messaging::Bus;
use assay_platform::auth::{Audience, KeyRing, ServiceTokens};
use assay_platform::db::{self, Clock, Database, DatabaseError};
use assay_platform::runtime::{Phase, Tasks};
use assay_platform::web::{ServerSettings, ServiceAuth, serve};
use tokio::sync::Notify;

use crate::app::{
    EnqueueMessages, RequestLimit, Sender, SenderLimits, WebhookClient, run_maintenance, send_messages,
};
use crate::consume::{NotificationsHandler, subscription};
use crate::domain::address::InvalidNetwork;
use crate::domain::schedule::InvalidSchedule;
use crate::http::{self, Services};
use crate::metrics;
use crate::store::{WebhookStore, webhook_store};
use crate::{Config, MIGRATIONS, SCHEMA};

/// What the process provides to the role.
pub struct Dependencies {
    /// Already bound.
    pub listener: TcpListener,
    pub tokens: ServiceTokens,
    pub signing_keys: KeyRing,
    pub bus: Bus,
}

/// Why the role cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Network(#[from] InvalidNetwork),
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error(
        "webhooks.concurrency, concurrency_per_endpoint, concurrency_per_organization, attempt_deadline_milliseconds, poll_interval_milliseconds, \
         delivery_retention_days and maintenance_interval_seconds must be at least 1"
    )]
    Settings,
    #[error("webhooks cannot make an HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("webhooks cannot serve: {0}")]
    Listener(#[from] std::io::Error),
}

/// Applies the pending migrations and returns their names.
///
/// # Errors
/// When the database cannot be reached or a migration fails. The next call continues from there.
pub async fn migrate(config: &Config) -> Result<Vec<String>, DatabaseError> {
    Database::open(&config.database(), SCHEMA)?.migrate(MIGRATIONS).await
}

/// Starts the role's tasks. The database and the bus may come up later: the role is not ready without the database, and
/// degraded without the bus.
///
/// # Errors
/// When the configuration cannot be used, or the HTTP client or server cannot be created.
pub fn start(config: &Config, dependencies: Dependencies, tasks: &mut Tasks) -> Result<(), StartError> {
    let Dependencies { listener, tokens, signing_keys, bus } = dependencies;
    check_settings(config)?;
    metrics::describe();
    let (rules, schedule) = (Arc::new(config.address_rules()?), config.schedule()?);
    let database = Database::open(&config.database(), SCHEMA)?;
    let store = webhook_store(&database);
    let clock = db::watch_clock(tasks, SCHEMA, &database);
    let sender_wakeup = Arc::new(Notify::new());
    db::register_readiness(tasks.readiness(), SCHEMA, &database, MIGRATIONS);
    let enqueue_messages = EnqueueMessages {
        store: store.clone(),
        schedule: schedule.clone(),
        sender_wakeup: sender_wakeup.clone(),
    };
    spawn_consumer(tasks, bus, enqueue_messages);
    let client = WebhookClient::new(rules.clone(), signing_keys.clone(), config.attempt_deadline())?;
    let limits = SenderLimits {
        concurrency: config.concurrency,
        per_endpoint: config.concurrency_per_endpoint,
        per_organization: config.concurrency_per_organization,
        attempt_deadline: config.attempt_deadline(),
        poll_interval: Duration::from_millis(config.poll_interval_milliseconds),
    };
    let sender = Arc::new(Sender {
        store: store.clone(),
        client,
        schedule,
        limits,
        wakeup: sender_wakeup.clone(),
        clock: clock.clone(),
    });
    tasks.spawn(Phase::Consume, "webhooks sender", move |stop| send_messages(sender, stop));
    spawn_maintenance(tasks, config, store.clone(), signing_keys.clone(), clock);
    let services = Data::new(Services {
        store,
        keys: signing_keys,
        rules,
        sender_wakeup,
        request_limit: RequestLimit::new(config.requested_messages_per_minute),
        endpoints_per_organization: config.endpoints_per_organization,
        previous_secret_millis: i64::from(config.previous_secret_seconds) * 1_000,
    });
    let auth = ServiceAuth { tokens, audience: Audience::Webhooks };
    serve(tasks, Phase::ServeInternal, SCHEMA, listener, ServerSettings::default(), move |app| {
        http::configure(app, services.clone(), auth.clone());
    })?;
    Ok(())
}

fn check_settings(config: &Config) -> Result<(), StartError> {
    let is_usable = config.concurrency > 0
        && config.concurrency_per_endpoint > 0
        && config.concurrency_per_organization > 0
        && config.attempt_deadline_milliseconds > 0
        && config.poll_interval_milliseconds > 0
        && config.delivery_retention_days > 0
        && config.maintenance_interval_seconds > 0;
    if is_usable { Ok(()) } else { Err(StartError::Settings) }
}

fn spawn_consumer(tasks: &mut Tasks, bus: Bus, enqueue_messages: EnqueueMessages) {
    let subscription = subscription();
    // Without the bus, endpoints can still be managed and messages sent: its outage only degrades the role.
    let pinged = bus.clone();
    tasks.readiness().register_degrading(format!("{SCHEMA} bus"), move || {
        let bus = pinged.clone();
        async move { bus.ping().await }
    });
    assay_messaging::register_handling_readiness(tasks.readiness(), SCHEMA, &bus, subscription.queue);
    let handler = Arc::new(NotificationsHandler { enqueue_messages });
    tasks.spawn(Phase::Consume, "webhooks consumer", move |stop| async move {
        bus.consume(subscription, handler, stop).await
    });
}

fn spawn_maintenance(tasks: &mut Tasks, config: &Config, store: WebhookStore, keys: KeyRing, clock: Clock) {
    const NAME: &str = "webhooks maintenance";
    let interval = Duration::from_secs(config.maintenance_interval_seconds);
    let state = (store, keys, clock);
    let retention = i64::from(config.delivery_retention_days) * DAY_MILLIS;
    tasks.spawn_periodic(Phase::Background, NAME, interval, state, move |(store, keys, clock)| async move {
        clock.verify().await?;
        run_maintenance(&store, &keys, retention).await
    });
}
