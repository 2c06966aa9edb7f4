//! Maintenance: creates partitions ahead of time, removes expired data and skips missing sequences.

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::ids::TicketId;
use assay_contracts::retention::TOMBSTONE_RETENTION_MILLIS;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ObjectError, Objects};

use crate::store::{ExpiredFile, ExportStore};

/// Expired files for each query.
const FILES_PER_QUERY: u32 = 100;

/// Rows removed in one transaction.
const ROWS_PER_TRANSACTION: u32 = 500;

/// How long exports wait for a missing sequence after later ones have arrived: a day, far longer than all delivery attempts
/// of an event.
const SEQUENCE_GAP_TIMEOUT_MILLIS: i64 = DAY_MILLIS;

/// Failure of a maintenance run; the next run continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The retention periods are unknown: no row is removed.
    #[error("evaluations are not removed: their retention periods cannot be read: {0}")]
    Retention(#[from] ClientError),
    #[error("expired export file {object_key} cannot be removed: {source}")]
    File { object_key: String, source: ObjectError },
}

/// Keeps the first failure, which the periodic task logs; logs further ones.
#[derive(Default)]
struct Failures {
    first: Option<MaintenanceError>,
}

impl Failures {
    fn add(&mut self, failure: MaintenanceError) {
        if self.first.is_none() {
            self.first = Some(failure);
        } else {
            tracing::warn!(cause = %failure, "maintenance of exports had a further failure: it is tried again");
        }
    }

    fn into_result(self) -> Result<(), MaintenanceError> {
        self.first.map_or(Ok(()), Err)
    }
}

/// Safe to run in several processes at once. All steps run even if one fails.
///
/// # Errors
/// The first error; further ones are logged.
pub(crate) async fn run_maintenance(
    store: &ExportStore,
    objects: &Objects,
    registry: &RegistryClient,
    now: Timestamp,
) -> Result<(), MaintenanceError> {
    let outcomes = [
        store.ensure_partitions(now).await.map_err(MaintenanceError::from),
        prune_inbox_and_recorded_responses(store, now).await.map_err(MaintenanceError::from),
        remove_expired_files(store, objects, now).await,
        prune_tombstones(store, now).await.map_err(MaintenanceError::from),
        remove_expired_rows(store, registry, now).await,
        skip_missing_sequences(store, now).await.map_err(MaintenanceError::from),
    ];
    let mut failures = Failures::default();
    outcomes.into_iter().filter_map(Result::err).for_each(|failure| failures.add(failure));
    failures.into_result()
}

async fn prune_inbox_and_recorded_responses(
    store: &ExportStore,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    while store.prune_inbox_and_recorded_responses(now).await? > 0 {}
    Ok(())
}

async fn prune_tombstones(store: &ExportStore, now: Timestamp) -> Result<(), DatabaseError> {
    let before = now.plus_millis(-TOMBSTONE_RETENTION_MILLIS);
    while store.prune_tombstones(before, ROWS_PER_TRANSACTION).await? == ROWS_PER_TRANSACTION as usize {}
    Ok(())
}

/// Skips sequences that have been missing for too long: exports must not wait forever for an evaluation whose event is a dead
/// letter. Exports report a skipped sequence as missing.
async fn skip_missing_sequences(store: &ExportStore, now: Timestamp) -> Result<(), DatabaseError> {
    for skipped in store.skip_missing_sequences(now.plus_millis(-SEQUENCE_GAP_TIMEOUT_MILLIS)).await? {
        let (organization_id, (first, last)) = (skipped.organization_id, skipped.sequences);
        tracing::error!(%organization_id, first, last, "evaluations never arrived: exports no longer wait for them; look for dead letters");
    }
    // After `TOMBSTONE_RETENTION_MILLIS` the consumer refuses the event as too old: the sequence can no longer arrive, and is no
    // longer reported.
    store.prune_skipped_sequences(None, now.plus_millis(-TOMBSTONE_RETENTION_MILLIS)).await
}

/// Removes rows beyond the retention period. scoring-worker applies the same rule to its evaluations.
async fn remove_expired_rows(
    store: &ExportStore,
    registry: &RegistryClient,
    now: Timestamp,
) -> Result<(), MaintenanceError> {
    for retention in registry.retention().await? {
        let Some(kept_since) = retention.evaluations.cutoff(now) else { continue };
        // Ids of tickets begin with the time of their import.
        let (organization_id, before) = (retention.organization_id, TicketId::min_at(kept_since));
        // The evaluations of these sequences would be removed anyway.
        store.prune_skipped_sequences(Some(organization_id), kept_since).await?;
        let mut count = 0;
        loop {
            let removed = store.remove_rows_older_than(organization_id, before, ROWS_PER_TRANSACTION).await?;
            count += removed;
            if removed < ROWS_PER_TRANSACTION as usize {
                break;
            }
        }
        if count > 0 {
            tracing::info!(%organization_id, count, "evaluations removed from later exports: their retention period has passed");
        }
    }
    Ok(())
}

/// Removes expired files, page by page. Files that cannot be removed do not prevent the removal of others, however many they are.
async fn remove_expired_files(
    store: &ExportStore,
    objects: &Objects,
    now: Timestamp,
) -> Result<(), MaintenanceError> {
    let (mut failures, mut last) = (Failures::default(), None);
    loop {
        let files = match store.expired_files(now, last, FILES_PER_QUERY).await {
            Ok(files) => files,
            Err(error) => {
                failures.add(error.into());
                break;
            }
        };
        let Some(end) = files.last() else { break };
        last = Some((end.expires_at, end.id));
        for file in &files {
            if let Err(failure) = remove_file(store, objects, file, now).await {
                failures.add(failure);
            }
        }
    }
    failures.into_result()
}

/// Deletes the file before marking the job: after an interruption the next run deletes it again, which is idempotent.
async fn remove_file(
    store: &ExportStore,
    objects: &Objects,
    file: &ExpiredFile,
    now: Timestamp,
) -> Result<(), MaintenanceError> {
    objects.delete(&file.object_key).await.map_err(|source| {
        let object_key = file.object_key.clone();
        MaintenanceError::File { object_key, source }
    })?;
    store.mark_file_removed(file.id, now).await?;
    tracing::info!(export = %file.id, "export file removed: its retention period has passed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_several_failures_is_returned() {
        let mut failures = Failures::default();
        for key in ["first", "second"] {
            let source = ObjectError::NotFound(key.to_owned());
            failures.add(MaintenanceError::File { object_key: key.to_owned(), source });
        }
        let returned = failures.into_result();
        assert!(matches!(returned, Err(MaintenanceError::File { object_key, .. }) if object_key == "first"));
        assert!(Failures::default().into_result().is_ok());
    }
}
