//! Maintenance: applies the retention periods of the organizations to existing files, whose removal is up to the export role,
//! and removes left-over files.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::retention::RetentionPeriod;
use assay_export::store::WorkStore;
use assay_platform::db::DatabaseError;
use assay_platform::objects::Objects;
use assay_platform::runtime::now;

use super::sweep_files::{SweepError, sweep_files};

/// Files updated in one transaction.
const BATCH: u32 = 500;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The retention periods are unknown: files keep their expiry.
    #[error("export files keep their expiry: the retention periods cannot be read: {0}")]
    Retention(#[from] ClientError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
}

/// What maintenance applies to files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRules {
    /// Retention period of organizations without their own.
    pub(crate) retention: RetentionPeriod,
    /// Left-over files younger than this are kept, in milliseconds.
    pub(crate) sweep_grace_millis: i64,
}

/// Safe to run in several processes at once. Both steps run even if one fails.
///
/// # Errors
/// The first error; a further one is logged.
pub(crate) async fn run_maintenance(
    store: &dyn WorkStore,
    objects: &Objects,
    registry: &RegistryClient,
    rules: FileRules,
) -> Result<(), MaintenanceError> {
    let swept = sweep_files(store, objects, now().plus_millis(-rules.sweep_grace_millis)).await;
    if let Err(retention) = apply_retention(store, registry, rules.retention).await {
        if let Err(error) = swept {
            tracing::warn!(cause = %error, "left-over export files are kept: the next run tries again");
        }
        return Err(retention);
    }
    Ok(swept?)
}

/// Applies the retention period of its organization, or `default`, to every kept file.
async fn apply_retention(
    store: &dyn WorkStore,
    registry: &RegistryClient,
    default: RetentionPeriod,
) -> Result<(), MaintenanceError> {
    for retention in registry.retention().await? {
        let period = retention.files.unwrap_or(default);
        let organization_id = retention.organization_id;
        let mut count = 0;
        loop {
            let changed = store.apply_file_retention(organization_id, period, BATCH).await?;
            count += changed;
            if changed < BATCH as usize {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, days = %period, "retention period of export files changed");
        }
    }
    Ok(())
}
