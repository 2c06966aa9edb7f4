//! The registry's database, for commands that work on it without HTTP.

use anyhow::Result;
use assay_platform::db::Database;

use crate::cli::RegistryPlace;
use crate::settings::Settings;
use crate::standalone::DataFolder;

/// The database, up to date, and the settings that it was found by.
pub async fn open(place: &RegistryPlace) -> Result<(Database, Settings)> {
    let mut settings = Settings::load()?;
    if let Some(folder) = &place.data_dir {
        DataFolder::existing(folder)?.place_databases(&mut settings);
    }
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    database.migrate(assay_agent_registry::MIGRATIONS).await?;
    Ok((database, settings))
}
