//! Maintenance: creates partitions ahead of time and removes expired data.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::TicketId;
use assay_contracts::retention::TOMBSTONE_RETENTION_MILLIS;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::store::EvaluationStore;

/// Evaluations removed in one transaction.
const BATCH: usize = 500;

/// Failure of a maintenance run; completed steps are kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The retention periods are unknown: no evaluation is removed.
    #[error("evaluations are not removed: their retention periods cannot be read: {0}")]
    Retention(#[from] ClientError),
}

/// Safe to run in several processes at once.
pub(crate) async fn run_maintenance(
    store: &EvaluationStore,
    registry: &RegistryClient,
) -> Result<(), MaintenanceError> {
    store.maintain_partitions(now()).await?;
    while store.prune_inbox(now()).await? > 0 {}
    let tombstones_before = now().plus_millis(-TOMBSTONE_RETENTION_MILLIS);
    while store.prune_tombstones(tombstones_before, BATCH).await? == BATCH {}
    let started_at = now();
    for retention in registry.retention().await? {
        let Some(kept_since) = retention.evaluations.cutoff(started_at) else { continue };
        let (organization_id, first_kept) = (retention.organization_id, TicketId::min_at(kept_since));
        let mut count = 0;
        loop {
            let removed = store.remove_older_than(organization_id, first_kept, BATCH).await?;
            count += removed;
            if removed < BATCH {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, "evaluations removed: their retention period has passed");
        }
    }
    Ok(())
}
