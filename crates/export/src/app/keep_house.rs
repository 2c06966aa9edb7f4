//! Prepares the tables for the time ahead and removes what is no longer kept.

use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ObjectError, Objects};

use crate::store::ExportStore;

/// Files looked up at once.
const BATCH: u32 = 100;

/// Why housekeeping did not come to its end; it goes on where it was next time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepHouseError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
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
    now: Timestamp,
) -> Result<(), KeepHouseError> {
    let outcomes = [
        store.ensure_partitions(now).await.map_err(KeepHouseError::from),
        prune(store, now).await.map_err(KeepHouseError::from),
        remove_expired_files(store, objects, now).await,
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
