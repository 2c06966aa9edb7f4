//! Prepares the tables for the time ahead and removes what is kept for a day only.

use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use crate::store::Store;

/// One round of housekeeping.
///
/// # Errors
/// When the database fails; what was done until then stays done.
pub async fn maintain(store: &dyn Store) -> Result<(), DatabaseError> {
    store.prepare(now()).await?;
    while store.prune(now()).await? == PRUNE_BATCH {}
    Ok(())
}
