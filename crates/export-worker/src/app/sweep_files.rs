//! Removes left-over files from the object store: files that no job has, because their worker was killed or their removal
//! failed.
//!
//! Safe while jobs and other sweepers run: the files of open jobs are kept, and the store is listed before the table is read,
//! so that the table has every listed file whose job completed meanwhile. A job that has ended gets no other file.
//!
//! Files of exports that the table does not have (after the database was restored) are removed only if it has another export
//! of the same organization. Organization ids are unique, so the files of another installation in the same store are kept.

use std::collections::{BTreeMap, BTreeSet};

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_export::domain::file_key::{self, FileKey};
use assay_export::store::{FileUse, WorkStore};
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ListedObject, ObjectError, Objects};
use assay_platform::runtime::now;

use crate::metrics::{self, LeftOverReason};

/// Files compared with the table at once.
const PORTION: usize = 500;

/// Younger empty folders are kept even without a grace period: an upload makes its folder before its file.
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

/// Removes left-over files and empty folders. A failure is logged, and the next run tries again.
pub(crate) async fn sweep(store: &WorkStore, objects: &Objects, grace_millis: i64) {
    let before = now().plus_millis(-grace_millis);
    if let Err(error) = sweep_files(store, objects, before).await {
        tracing::warn!(cause = %error, "left-over export files are kept: the next run tries again");
    }
    let folders_before = before.min(now().plus_millis(-MIN_FOLDER_AGE_MILLIS));
    if let Err(error) = objects.remove_empty_folders(file_key::PREFIX, folders_before).await {
        tracing::warn!(cause = %error, "empty folders of export files are kept: the next run tries again");
    }
}

/// Removes left-over files that were last changed before `before`. A file that cannot be removed does not prevent
/// the removal of others.
///
/// # Errors
/// The first error.
async fn sweep_files(store: &WorkStore, objects: &Objects, before: Timestamp) -> Result<(), SweepError> {
    let mut are_foreign_files_reported = false;
    let mut listing = objects.list(file_key::PREFIX);
    let mut failure = Ok(());
    loop {
        let listed = listing.next(PORTION).await.map_err(SweepError::Listing)?;
        if listed.is_empty() {
            return failure;
        }
        let old: Vec<_> =
            export_files(listed).into_iter().filter(|(_, object)| object.modified < before).collect();
        if old.is_empty() {
            continue;
        }
        let uses = store.file_uses(old.iter().map(|(key, _)| key.export_id).collect()).await?;
        let known = known_organizations(store, &old, &uses).await?;
        for (key, object) in old {
            let file_use = uses.get(&key.export_id);
            if file_use.is_none() && !known.contains(&key.organization_id) {
                if !are_foreign_files_reported {
                    are_foreign_files_reported = true;
                    tracing::error!(
                        key = %object.key,
                        "export files are kept: the database of `export_worker.database_url` knows neither their exports nor \
                         their organizations; check that `objects.url` is of this installation"
                    );
                }
                continue;
            }
            let Some(reason) = left_over_reason(file_use, &object) else { continue };
            failure = failure.and(remove(objects, object, reason).await);
        }
    }
}

/// The files whose key is one of an export file; others are ignored.
fn export_files(listed: Vec<ListedObject>) -> Vec<(FileKey, ListedObject)> {
    let with_key = |object: ListedObject| Some((FileKey::parse(&object.key)?, object));
    listed.into_iter().filter_map(with_key).collect()
}

/// Of the organizations with files of unknown exports: those that have other exports in the table.
async fn known_organizations(
    store: &WorkStore,
    files: &[(FileKey, ListedObject)],
    uses: &BTreeMap<ExportId, FileUse>,
) -> Result<BTreeSet<OrganizationId>, DatabaseError> {
    let of_unknown_exports = files.iter().filter(|(key, _)| !uses.contains_key(&key.export_id));
    let organizations: BTreeSet<OrganizationId> =
        of_unknown_exports.map(|(key, _)| key.organization_id).collect();
    if organizations.is_empty() {
        return Ok(BTreeSet::new());
    }
    store.organizations_with_jobs(organizations).await
}

async fn remove(objects: &Objects, object: ListedObject, reason: LeftOverReason) -> Result<(), SweepError> {
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
fn left_over_reason(file_use: Option<&FileUse>, object: &ListedObject) -> Option<LeftOverReason> {
    match file_use {
        Some(FileUse::Open) => None,
        _ if object.is_unfinished() => Some(LeftOverReason::Unfinished),
        Some(FileUse::File { object_key }) => (*object_key != object.key).then_some(LeftOverReason::Attempt),
        Some(FileUse::None) => Some(LeftOverReason::Ended),
        None => Some(LeftOverReason::Unknown),
    }
}
