//! The registry's database, for commands that work on it without HTTP.

use anyhow::{Context, Result};
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
    let told = || {
        match &place.data_dir {
        Some(folder) => format!("cannot use the database in {}", folder.display()),
        None => "cannot use the database of registry.database_url (that of a standalone is named by --data-dir FOLDER)"
            .to_owned(),
    }
    };
    let database =
        Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA).with_context(told)?;
    database.migrate(assay_agent_registry::MIGRATIONS).await.with_context(told)?;
    Ok((database, settings))
}
