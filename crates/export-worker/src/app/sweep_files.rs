//! Removes the files of the object store that no job has: what killed workers left behind, and what could not be deleted when
//! its time came.
//!
//! Safe beside running jobs and other sweepers: the store is listed before the table is read, so that a file that became the
//! file of its job meanwhile is known, and the files of open jobs are left alone until the job ends. A job that has ended gets
//! no other file.
//!
//! Files of exports that the table does not have are removed only beside one of an export that it has: with the files or the
//! database of another installation, nothing is removed.

use std::collections::BTreeMap;

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_export::domain::file_key::{self, FileKey};
use assay_export::store::{FileUse, WorkStore};
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ListedObject, ObjectError, Objects};
use assay_platform::runtime::now;

use crate::metrics::{self, SweptFile};

/// Files compared with the table at once.
const PORTION: usize = 500;

/// Younger empty folders are kept whatever the grace period: an upload makes its folder before its file.
const MIN_FOLDER_AGE_MILLIS: i64 = 60_000;

#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("export files cannot be listed: {0}")]
    Listing(ObjectError),
    #[error("left-over export file {object_key} cannot be removed: {source}")]
    File { object_key: String, source: ObjectError },
}

/// Removes left-over files. A failure is logged, and the next run tries again: neither it nor the retention periods, which
/// other runs apply, wait for each other.
pub(crate) async fn sweep(store: &dyn WorkStore, objects: &Objects, grace_millis: i64) {
    let before = now().plus_millis(-grace_millis);
    if let Err(error) = sweep_files(store, objects, before).await {
        tracing::warn!(cause = %error, "left-over export files are kept: the next run tries again");
    }
    let before = before.min(now().plus_millis(-MIN_FOLDER_AGE_MILLIS));
    if let Err(error) = objects.remove_empty_folders(file_key::PREFIX, before).await {
        tracing::warn!(cause = %error, "empty folders of export files are kept: the next run tries again");
    }
}

/// Removes left-over files that were last changed before `before`. A file that cannot be removed does not keep the others.
///
/// # Errors
/// The first error.
async fn sweep_files(store: &dyn WorkStore, objects: &Objects, before: Timestamp) -> Result<(), SweepError> {
    let is_ours = has_file_of_an_export(store, objects).await?;
    let mut is_reported = false;
    let mut listing = objects.list(file_key::PREFIX);
    let mut failure = Ok(());
    loop {
        let listed = listing.next(PORTION).await.map_err(SweepError::Listing)?;
        if listed.is_empty() {
            return failure;
        }
        let old: Vec<_> = keyed(listed).into_iter().filter(|(_, object)| object.modified < before).collect();
        let uses = uses_of(store, &old).await?;
        for (id, object) in old {
            if !is_ours && !uses.contains_key(&id) {
                if !is_reported {
                    is_reported = true;
                    tracing::error!(
                        key = %object.key,
                        "export files are kept: none below `objects.url` is of an export in the database of \
                         `export_worker.database_url`; check that both settings are of this installation"
                    );
                }
                continue;
            }
            let Some(reason) = left_over(&uses, id, &object) else { continue };
            failure = failure.and(remove(objects, object, reason).await);
        }
    }
}

/// Whether any file of the store is of an export in the table. If none is, the store or the database may be that of another
/// installation, or the database is new.
async fn has_file_of_an_export(store: &dyn WorkStore, objects: &Objects) -> Result<bool, SweepError> {
    let mut listing = objects.list(file_key::PREFIX);
    loop {
        let listed = listing.next(PORTION).await.map_err(SweepError::Listing)?;
        if listed.is_empty() {
            return Ok(false);
        }
        if !uses_of(store, &keyed(listed)).await?.is_empty() {
            return Ok(true);
        }
    }
}

/// The files with the keys of exports.
fn keyed(listed: Vec<ListedObject>) -> Vec<(ExportId, ListedObject)> {
    let keyed = |object: ListedObject| Some((FileKey::parse(&object.key)?.export_id, object));
    listed.into_iter().filter_map(keyed).collect()
}

async fn uses_of(
    store: &dyn WorkStore,
    files: &[(ExportId, ListedObject)],
) -> Result<BTreeMap<ExportId, FileUse>, DatabaseError> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    store.file_uses(files.iter().map(|(id, _)| *id).collect()).await
}

async fn remove(objects: &Objects, object: ListedObject, reason: SweptFile) -> Result<(), SweepError> {
    match objects.delete_listed(&object).await {
        Ok(()) => {
            metrics::swept(reason);
            tracing::info!(key = %object.key, reason = reason.as_str(), "left-over export file removed");
            Ok(())
        }
        Err(source) => {
            let error = SweepError::File { object_key: object.key, source };
            tracing::warn!(cause = %error, "left-over export file is kept");
            Err(error)
        }
    }
}

/// Why no job has this file; `None` if one has it, or may have it.
fn left_over(uses: &BTreeMap<ExportId, FileUse>, id: ExportId, object: &ListedObject) -> Option<SweptFile> {
    match uses.get(&id) {
        Some(FileUse::Open) => None,
        _ if object.is_unfinished() => Some(SweptFile::Unfinished),
        Some(FileUse::File { object_key }) => (*object_key != object.key).then_some(SweptFile::Attempt),
        Some(FileUse::None) => Some(SweptFile::Ended),
        None => Some(SweptFile::Unknown),
    }
}
