//! Removes the files of the object store that no job has: what killed workers left behind, and what could not be deleted when
//! its time came.
//!
//! Safe beside running jobs and other sweepers: the store is listed before the table is read, so that a file that became the
//! file of its job meanwhile is known, and the files of open jobs are left alone until the job ends. A job that has ended gets
//! no other file.

use std::collections::BTreeMap;

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_export::domain::file_key::{self, FileKey};
use assay_export::store::{FileUse, WorkStore};
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ListedObject, ObjectError, Objects};

use crate::metrics::{self, SweptFile};

/// Files compared with the table at once.
const PORTION: usize = 500;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("export files cannot be listed: {0}")]
    Listing(ObjectError),
    #[error("left-over export file {object_key} cannot be removed: {source}")]
    File { object_key: String, source: ObjectError },
}

/// Removes left-over files that were last changed before `before`. A file that cannot be removed does not keep the others.
///
/// # Errors
/// The first error; the next run tries again.
pub(crate) async fn sweep_files(
    store: &dyn WorkStore,
    objects: &Objects,
    before: Timestamp,
) -> Result<(), SweepError> {
    let mut listing = objects.list(file_key::PREFIX);
    let mut failure = Ok(());
    loop {
        let listed = listing.next(PORTION).await.map_err(SweepError::Listing)?;
        if listed.is_empty() {
            return failure;
        }
        let old: Vec<_> = listed
            .into_iter()
            .filter(|object| object.modified < before)
            .filter_map(|object| Some((FileKey::parse(&object.key)?.export_id, object)))
            .collect();
        if old.is_empty() {
            continue;
        }
        let uses = store.file_uses(old.iter().map(|(id, _)| *id).collect()).await?;
        for (id, object) in old {
            let Some(reason) = left_over(&uses, id, &object) else { continue };
            match objects.delete_listed(&object).await {
                Ok(()) => {
                    metrics::swept(reason);
                    tracing::info!(key = %object.key, reason = reason.as_str(), "left-over export file removed");
                }
                Err(source) => {
                    let error = SweepError::File { object_key: object.key, source };
                    tracing::warn!(cause = %error, "left-over export file is kept");
                    failure = failure.and(Err(error));
                }
            }
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
