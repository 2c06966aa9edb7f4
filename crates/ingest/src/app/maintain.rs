//! Prepares the tables for the time ahead and removes what is no longer kept.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::retention::DELETIONS_REMEMBERED_MILLIS;
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use crate::domain::Expiry;
use crate::store::Store;

/// Conversations that one transaction removes. Each may be 4 MiB, and all of them are in memory.
const EXPIRY_BATCH: usize = 10;

/// Deletions that one transaction forgets.
const FORGET_BATCH: usize = 1_000;

/// Why housekeeping did not come to its end; what was done until then stays done.
#[derive(Debug, thiserror::Error)]
pub enum MaintainError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Nobody knows how long transcripts are kept: none is removed.
    #[error("transcripts are not removed, because their periods are not known: {0}")]
    Periods(#[from] ClientError),
}

/// One round of housekeeping; safe in several processes at once.
///
/// # Errors
/// [`MaintainError`].
pub async fn maintain(
    store: &dyn Store,
    outbox: &Outbox,
    registry: &RegistryClient,
) -> Result<(), MaintainError> {
    store.prepare(now()).await?;
    while store.prune(now()).await? == PRUNE_BATCH {}
    let before = now().plus_millis(-DELETIONS_REMEMBERED_MILLIS);
    while store.forget_deletions(before, FORGET_BATCH).await? == FORGET_BATCH {}
    remove_expired_transcripts(store, outbox, registry).await
}

async fn remove_expired_transcripts(
    store: &dyn Store,
    outbox: &Outbox,
    registry: &RegistryClient,
) -> Result<(), MaintainError> {
    let now = now();
    for expiry in registry.retention().await?.iter().filter_map(|retention| Expiry::of(retention, now)) {
        let mut count = 0;
        loop {
            let removed = store.expire(expiry, EXPIRY_BATCH).await?;
            outbox.wake();
            count += removed;
            if removed < EXPIRY_BATCH {
                break;
            }
        }
        if count > 0 {
            let organization_id = expiry.organization_id;
            tracing::info!(%organization_id, count, "transcripts removed: their period has passed");
        }
    }
    Ok(())
}
