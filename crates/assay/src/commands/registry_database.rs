//! Opens the registry's database for commands that use it without HTTP.

use anyhow::{Context, Result};
use assay_platform::db::Database;

use crate::cli::RegistryLocation;
use crate::installation::DataFolder;
use crate::settings::Settings;

const CANNOT_USE_CONFIGURED: &str = "cannot use the database of registry.database_url (that of a standalone is named by \
                                     --data-dir FOLDER)";

/// Opens and migrates the database. Also returns the settings.
pub async fn open(location: &RegistryLocation) -> Result<(Database, Settings)> {
    let mut settings = Settings::load()?;
    if let Some(folder) = &location.data_dir {
        // A running standalone holds the lock.
        let folder = DataFolder::open_without_lock(folder)?;
        folder.configure_databases(&mut settings);
        // It may have been started with another `--listen`, or on a free port.
        settings.gateway.listen = folder.recorded_address().unwrap_or(settings.gateway.listen);
    }
    let context = || match &location.data_dir {
        Some(folder) => format!("cannot use the database in {}", folder.display()),
        None => CANNOT_USE_CONFIGURED.to_owned(),
    };
    let database =
        Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA).with_context(context)?;
    database.migrate(assay_agent_registry::MIGRATIONS).await.with_context(context)?;
    Ok((database, settings))
}
