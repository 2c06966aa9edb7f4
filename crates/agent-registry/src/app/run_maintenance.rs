//! Removes expired idempotency records.

use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use crate::store::Store;

/// One maintenance round, in batches.
///
/// # Errors
/// When the database fails; the next round continues.
pub async fn run_maintenance(store: &dyn Store) -> Result<(), DatabaseError> {
    while store.prune(now()).await? == PRUNE_BATCH {}
    Ok(())
}
