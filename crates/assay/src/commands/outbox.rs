//! `assay outbox`: shows events that are committed and not yet published.

use std::io::{Write, stdout};

use anyhow::{Context, Result, bail};
use assay_messaging::outbox::Outbox;
use assay_platform::db::{Database, DatabaseSettings, Migrations};
use assay_platform::runtime::now;

use super::display::{age, one_line};
use crate::cli::{OutboxCommand, ServicesLocation};
use crate::settings::Settings;
use crate::standalone::DataFolder;

static OUTBOX_TABLES: &[Migrations] = &[assay_messaging::MIGRATIONS];

pub struct ServiceOutbox {
    /// The schema of the service.
    pub service: &'static str,
    pub outbox: Outbox,
}

pub async fn run(command: OutboxCommand) -> Result<()> {
    match command {
        OutboxCommand::Status { location } => status(&settings_of(&location)?).await,
    }
}

/// The settings; with the bus and the databases of a standalone when its folder is given.
pub fn settings_of(location: &ServicesLocation) -> Result<Settings> {
    let mut settings = Settings::load()?;
    if let Some(folder) = &location.data_dir {
        DataFolder::existing(folder)?.configure_databases(&mut settings);
        settings.bus.url = "local:".into();
    }
    Ok(settings)
}

/// Opens the outboxes of all services that have one. Never migrates: reading must not change the database.
pub async fn open_all(settings: &Settings) -> Result<Vec<ServiceOutbox>> {
    let mut outboxes = Vec::new();
    for (service, database) in databases(settings) {
        let outbox = open(service, &database).await.with_context(|| format!("outbox of {service}"))?;
        outboxes.push(ServiceOutbox { service, outbox });
    }
    Ok(outboxes)
}

/// The services that have an outbox. (Webhooks publishes nothing.)
fn databases(settings: &Settings) -> [(&'static str, DatabaseSettings); 4] {
    [
        (assay_agent_registry::SCHEMA, settings.registry.database()),
        (assay_ingest::SCHEMA, settings.ingest.database()),
        (assay_scoring_worker::SCHEMA, settings.scoring.database()),
        (assay_export::SCHEMA, settings.export.database()),
    ]
}

async fn open(service: &'static str, settings: &DatabaseSettings) -> Result<Outbox> {
    let database = Database::open(settings, service)?;
    if !database.pending_migrations(OUTBOX_TABLES).await?.is_empty() {
        bail!("the database is not up to date: run `assay migrate`, or start the standalone once");
    }
    Ok(Outbox::new(database))
}

/// One line per service. A database that cannot be reached does not hide the others.
async fn status(settings: &Settings) -> Result<()> {
    let mut output = stdout();
    writeln!(output, "{:10}  {:>8}  {:>8}  {:>8}  LAST ERROR", "SERVICE", "PENDING", "OLDEST", "DEAD")?;
    let mut unreachable = Vec::new();
    for (service, database) in databases(settings) {
        let status = async { Ok::<_, anyhow::Error>(open(service, &database).await?.status().await?) };
        match status.await {
            Ok(status) => {
                let oldest =
                    status.oldest_pending.map_or_else(|| "-".to_owned(), |moment| age(moment, now()));
                let last_error = status.last_error.as_deref().map_or_else(|| "-".to_owned(), one_line);
                let (pending, dead) = (status.pending, status.dead);
                writeln!(output, "{service:10}  {pending:>8}  {oldest:>8}  {dead:>8}  {last_error}")?;
            }
            Err(error) => {
                writeln!(
                    output,
                    "{service:10}  {:>8}  {:>8}  {:>8}  {}",
                    "?",
                    "?",
                    "?",
                    one_line(&format!("{error:#}"))
                )?;
                unreachable.push(service);
            }
        }
    }
    if unreachable.is_empty() {
        return Ok(());
    }
    let unreachable = unreachable.join(", ");
    bail!("the outbox of {unreachable} cannot be seen from here: run this where all databases can be reached")
}
