//! Removes expired recorded responses, and sessions and sign-in links of the console that have ended.

use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use super::console_sessions::idle_since;
use crate::domain::SessionLimits;
use crate::store::Store;

/// One maintenance round: recorded responses in batches, sessions and sign-in links all at once.
///
/// # Errors
/// When the database fails; the next round continues.
pub async fn run_maintenance(store: &Store, limits: SessionLimits) -> Result<(), DatabaseError> {
    let now = now();
    while store.prune_recorded_responses(now).await? == PRUNE_BATCH {}
    store.prune_sessions(idle_since(limits, now), now).await
}
