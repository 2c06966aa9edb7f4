//! The databases of an installation: where they are, their migrations, and the outboxes in them.

mod data_folder;

use anyhow::{Context, Result, bail};
use assay_messaging::outbox::Outbox;
use assay_platform::db::{Database, DatabaseSettings, Migrations};

pub use self::data_folder::DataFolder;
use crate::cli::ServicesLocation;
use crate::settings::Settings;

static OUTBOX_TABLES: &[Migrations] = &[assay_messaging::MIGRATIONS];

pub struct ServiceOutbox {
    /// Named by its schema.
    pub service: &'static str,
    pub outbox: Outbox,
}

/// The settings; with the bus and the databases of a standalone when its folder is given.
pub fn load_settings(location: &ServicesLocation) -> Result<Settings> {
    let mut settings = Settings::load()?;
    if let Some(folder) = &location.data_dir {
        DataFolder::open_without_lock(folder)?.configure_databases(&mut settings);
        settings.bus.url = "local:".into();
    }
    Ok(settings)
}

/// Migrates every service's schema. Returns the applied migrations by service.
pub async fn migrate_all(settings: &Settings) -> Result<Vec<(&'static str, Vec<String>)>> {
    let mut migrated = vec![
        ("registry", assay_agent_registry::migrate(&settings.registry).await.context("registry")?),
        ("ingest", assay_ingest::migrate(&settings.ingest).await.context("ingest")?),
        ("scoring", assay_scoring_worker::migrate(&settings.scoring).await.context("scoring")?),
        ("export", assay_export::migrate(&settings.export).await.context("export")?),
    ];
    // An installation without webhooks needs no database for them.
    if settings.webhooks_url()?.is_some() {
        let applied = assay_webhooks::migrate(&settings.webhooks).await.context("webhooks")?;
        migrated.push(("webhooks", applied));
    }
    Ok(migrated)
}

/// Opens the outboxes of all services that have one. Never migrates: reading must not change the database.
pub async fn open_outboxes(settings: &Settings) -> Result<Vec<ServiceOutbox>> {
    let mut outboxes = Vec::new();
    for (service, database) in outbox_databases(settings) {
        let outbox = open_outbox(service, &database).await.with_context(|| format!("outbox of {service}"))?;
        outboxes.push(ServiceOutbox { service, outbox });
    }
    Ok(outboxes)
}

/// The services that have an outbox. (Webhooks publishes nothing.)
pub fn outbox_databases(settings: &Settings) -> [(&'static str, DatabaseSettings); 4] {
    [
        (assay_agent_registry::SCHEMA, settings.registry.database()),
        (assay_ingest::SCHEMA, settings.ingest.database()),
        (assay_scoring_worker::SCHEMA, settings.scoring.database()),
        (assay_export::SCHEMA, settings.export.database()),
    ]
}

/// Opens the outbox of a service, which must be migrated.
pub async fn open_outbox(service: &'static str, settings: &DatabaseSettings) -> Result<Outbox> {
    let database = Database::open(settings, service)?;
    if !database.pending_migrations(OUTBOX_TABLES).await?.is_empty() {
        bail!("the database is not up to date: run `assay migrate`, or start the standalone once");
    }
    Ok(Outbox::new(database))
}
