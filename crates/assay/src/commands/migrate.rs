//! `assay migrate`: migrates the databases of all services. A Job in Kubernetes; the standalone does it when it starts.

use std::io::{Write, stderr};

use anyhow::{Context, Result};

use crate::settings::Settings;

pub async fn run() -> Result<()> {
    let settings = Settings::load()?;
    let mut output = stderr();
    for (service, applied) in migrate_all(&settings).await? {
        match applied.as_slice() {
            [] => writeln!(output, "{service}: up to date")?,
            applied => writeln!(output, "{service}: applied {}", applied.join(", "))?,
        }
    }
    Ok(())
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
