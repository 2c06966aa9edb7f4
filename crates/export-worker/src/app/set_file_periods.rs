//! Lets files expire when the period of their organization has passed, also when it was set after they were made. The export
//! role removes what has expired.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::retention::Period;
use assay_export::store::WorkStore;
use assay_platform::db::DatabaseError;

/// Files changed by one transaction.
const BATCH: u32 = 500;

/// Why files did not get their periods; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetFilePeriodsError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Nobody knows the periods: files keep those that they have.
    #[error("files keep the periods that they have, because those of their organizations are not known: {0}")]
    Periods(#[from] ClientError),
}

/// Gives every file that is still kept the period of its organization, or `default`; safe in several processes at once.
pub(crate) async fn set_file_periods(
    store: &dyn WorkStore,
    registry: &RegistryClient,
    default: Period,
) -> Result<(), SetFilePeriodsError> {
    for retention in registry.retention().await? {
        let period = retention.files.unwrap_or(default);
        let organization_id = retention.organization_id;
        let mut count = 0;
        loop {
            let changed = store.set_file_period(organization_id, period, BATCH).await?;
            count += changed;
            if changed < BATCH as usize {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, days = %period, "files of exports are kept for another period now");
        }
    }
    Ok(())
}
