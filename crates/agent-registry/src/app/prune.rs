//! Removes what is kept for a day only.

use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use crate::store::Store;

/// Removes all expired idempotency records, in batches.
///
/// # Errors
/// When the database fails; what was removed until then stays removed.
pub async fn prune(store: &dyn Store) -> Result<(), DatabaseError> {
    while store.prune(now()).await? == PRUNE_BATCH {}
    Ok(())
}
