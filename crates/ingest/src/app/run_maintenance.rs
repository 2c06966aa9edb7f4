//! Maintenance: creates partitions ahead of time, and removes data whose retention period has passed.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::TicketId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::refusal::REFUSAL_RETENTION_MILLIS;
use assay_contracts::retention::TOMBSTONE_RETENTION_MILLIS;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::PRUNE_BATCH;
use assay_platform::runtime::now;

use crate::domain::RetentionCutoff;
use crate::store::Store;

/// Maximum number of conversations removed in one transaction. Each may be 4 MiB, and all of them are in memory.
const EXPIRY_BATCH: usize = 10;

/// Maximum number of small rows (tombstones, refusals, expired tickets) removed in one transaction.
const ROWS_BATCH: usize = 1_000;

/// A failed maintenance run; batches committed before the failure stay committed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Without the retention periods no transcript is removed.
    #[error("no transcripts were removed: the retention periods cannot be read: {0}")]
    RetentionUnknown(#[from] ClientError),
}

/// One maintenance run; safe to run concurrently in several processes.
pub async fn run_maintenance(
    store: &Store,
    outbox: &Outbox,
    registry: &RegistryClient,
) -> Result<(), MaintenanceError> {
    store.maintain_partitions(now()).await?;
    while store.prune_recorded_responses(now()).await? == PRUNE_BATCH {}
    let deleted_before = now().plus_millis(-TOMBSTONE_RETENTION_MILLIS);
    while store.prune_tombstones(deleted_before, ROWS_BATCH).await? == ROWS_BATCH {}
    let refused_before = now().plus_millis(-REFUSAL_RETENTION_MILLIS);
    while store.prune_refusals(refused_before, ROWS_BATCH).await? == ROWS_BATCH {}
    remove_expired_transcripts(store, outbox, registry).await
}

async fn remove_expired_transcripts(
    store: &Store,
    outbox: &Outbox,
    registry: &RegistryClient,
) -> Result<(), MaintenanceError> {
    let now = now();
    let retentions = registry.retention().await?;
    for retention in &retentions {
        prune_expired_tickets(store, retention, now).await?;
    }
    for cutoff in retentions.iter().filter_map(|retention| RetentionCutoff::of(retention, now)) {
        let mut count = 0;
        loop {
            let removed = store.expire(cutoff, EXPIRY_BATCH).await?;
            outbox.wake();
            count += removed;
            if removed < EXPIRY_BATCH {
                break;
            }
        }
        if count > 0 {
            let organization_id = cutoff.organization_id;
            tracing::info!(%organization_id, count, "transcripts removed: their retention period has passed");
        }
    }
    Ok(())
}

/// Removes the expired tickets whose evaluations have expired, too. An organization that keeps its transcripts for ever may
/// have some, from a shorter period that it had before.
async fn prune_expired_tickets(
    store: &Store,
    retention: &OrganizationRetention,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let Some(kept_since) = retention.evaluations.cutoff(now) else { return Ok(()) };
    let first_kept = TicketId::min_at(kept_since);
    while store.prune_expired_tickets(retention.organization_id, first_kept, ROWS_BATCH).await? == ROWS_BATCH
    {
    }
    Ok(())
}
