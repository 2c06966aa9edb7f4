//! Prepares the tables for the time ahead and removes what is no longer kept.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::TicketId;
use assay_contracts::retention::DELETIONS_REMEMBERED_MILLIS;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ObjectError, Objects};

use crate::store::ExportStore;

/// Files looked up at once.
const BATCH: u32 = 100;

/// Rows removed or forgotten by one transaction.
const ROWS: u32 = 500;

/// Younger evaluations of the same organization have arrived for so long, in milliseconds, when one is given up: a day, far
/// beyond all attempts at an event.
const ARRIVAL_PATIENCE_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// Why housekeeping did not come to its end; it goes on where it was next time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepHouseError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Nobody knows how long evaluations are kept: none is removed.
    #[error("evaluations are not removed, because their periods are not known: {0}")]
    Periods(#[from] ClientError),
    /// A file cannot be removed.
    #[error("file {object_key} of export whose retention time has passed cannot be removed: {source}")]
    File {
        /// The file.
        object_key: String,
        /// Why.
        source: ObjectError,
    },
}

/// One round of housekeeping; safe in several processes at once. A step that fails does not keep the others from being
/// done.
///
/// # Errors
/// The first [`KeepHouseError`]; further ones are logged here.
pub(crate) async fn keep_house(
    store: &dyn ExportStore,
    objects: &Objects,
    registry: &RegistryClient,
    now: Timestamp,
) -> Result<(), KeepHouseError> {
    let outcomes = [
        store.ensure_partitions(now).await.map_err(KeepHouseError::from),
        prune(store, now).await.map_err(KeepHouseError::from),
        remove_expired_files(store, objects, now).await,
        forget_deletions(store, now).await.map_err(KeepHouseError::from),
        remove_old_rows(store, registry, now).await,
        give_up_arrivals(store, now).await.map_err(KeepHouseError::from),
    ];
    let mut errors = outcomes.into_iter().filter_map(Result::err);
    let Some(first) = errors.next() else { return Ok(()) };
    for further in errors {
        tracing::warn!(cause = %further, "housekeeping of exports failed in more than one way: it is tried again");
    }
    Err(first)
}

async fn prune(store: &dyn ExportStore, now: Timestamp) -> Result<(), DatabaseError> {
    while store.prune(now).await? > 0 {}
    Ok(())
}

async fn forget_deletions(store: &dyn ExportStore, now: Timestamp) -> Result<(), DatabaseError> {
    let before = now.plus_millis(-DELETIONS_REMEMBERED_MILLIS);
    while store.forget_deletions(before, ROWS).await? == ROWS as usize {}
    Ok(())
}

/// Exports must not wait for ever for an evaluation whose event is a dead letter that nobody retries.
async fn give_up_arrivals(store: &dyn ExportStore, now: Timestamp) -> Result<(), DatabaseError> {
    for given_up in store.give_up_arrivals(now.plus_millis(-ARRIVAL_PATIENCE_MILLIS)).await? {
        let (organization_id, (first, last)) = (given_up.organization_id, given_up.numbers);
        tracing::error!(%organization_id, first, last, "evaluations never arrived: exports wait for them no more; look for dead letters");
    }
    Ok(())
}

/// Rows of evaluations whose period has passed. Where they were made they are removed by the same rule.
async fn remove_old_rows(
    store: &dyn ExportStore,
    registry: &RegistryClient,
    now: Timestamp,
) -> Result<(), KeepHouseError> {
    for retention in registry.retention().await? {
        let Some(kept_since) = retention.evaluations.kept_since(now) else { continue };
        let (organization_id, before) = (retention.organization_id, TicketId::first_at(kept_since));
        let mut count = 0;
        loop {
            let removed = store.remove_older_rows(organization_id, before, ROWS).await?;
            count += removed;
            if removed < ROWS as usize {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, "evaluations removed from exports to come: their period has passed");
        }
    }
    Ok(())
}

/// The file goes first: when this is interrupted, the next round removes it once more, which changes nothing.
async fn remove_expired_files(
    store: &dyn ExportStore,
    objects: &Objects,
    now: Timestamp,
) -> Result<(), KeepHouseError> {
    loop {
        let expired = store.expired_files(now, BATCH).await?;
        if expired.is_empty() {
            return Ok(());
        }
        for file in expired {
            if let Err(source) = objects.delete(&file.object_key).await {
                return Err(KeepHouseError::File { object_key: file.object_key, source });
            }
            store.file_removed(file.id, now).await?;
            tracing::info!(export = %file.id, "file of an export removed: its retention time has passed");
        }
    }
}
