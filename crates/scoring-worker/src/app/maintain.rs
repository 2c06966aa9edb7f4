//! Prepares the tables for the time ahead and removes what is no longer kept.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::TicketId;
use assay_contracts::retention::DELETIONS_REMEMBERED_MILLIS;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::store::EvaluationStore;

/// Evaluations that one transaction removes.
const BATCH: usize = 500;

/// Why housekeeping did not come to its end; what was done until then stays done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintainError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Nobody knows how long evaluations are kept: none is removed.
    #[error("evaluations are not removed, because their periods are not known: {0}")]
    Periods(#[from] ClientError),
}

/// One round of housekeeping; safe in several processes at once.
pub(crate) async fn maintain(
    store: &dyn EvaluationStore,
    registry: &RegistryClient,
) -> Result<(), MaintainError> {
    store.prepare(now()).await?;
    while store.prune(now()).await? > 0 {}
    let before = now().plus_millis(-DELETIONS_REMEMBERED_MILLIS);
    while store.forget_deletions(before, BATCH).await? == BATCH {}
    let now = now();
    for retention in registry.retention().await? {
        let Some(kept_since) = retention.evaluations.kept_since(now) else { continue };
        let (organization_id, before) = (retention.organization_id, TicketId::first_at(kept_since));
        let mut count = 0;
        loop {
            let removed = store.remove_older(organization_id, before, BATCH).await?;
            count += removed;
            if removed < BATCH {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, "evaluations removed: their period has passed");
        }
    }
    Ok(())
}
