//! Maintenance: applies the retention periods of the organizations to existing files. The export role removes
//! expired files.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::retention::RetentionPeriod;
use assay_export::store::WorkStore;
use assay_platform::db::DatabaseError;

/// Files updated in one transaction.
const BATCH: u32 = 500;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The retention periods are unknown: files keep their expiry.
    #[error("export files keep their expiry: the retention periods cannot be read: {0}")]
    Retention(#[from] ClientError),
}

/// Applies the retention period of its organization, or `default`, to every kept file. Safe to run in several processes at once.
///
/// # Errors
/// When the periods or the files cannot be read.
pub(crate) async fn run_maintenance(
    store: &WorkStore,
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
