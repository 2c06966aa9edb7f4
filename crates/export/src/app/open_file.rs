//! Opens the file of a signed download URL.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_platform::auth::KeyRing;
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ObjectError, Objects};
use assay_platform::runtime::now;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::download_permits::{DownloadsBusy, FileOwner};
use crate::domain::download_address::{self, InvalidAddress};
use crate::domain::file_view::FileView;
use crate::store::ExportStore;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFileError {
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    #[error("the file is no longer kept")]
    Gone,
    #[error(transparent)]
    Busy(DownloadsBusy),
    #[error(transparent)]
    Objects(ObjectError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<ObjectError> for OpenFileError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::NotFound(key) => {
                tracing::warn!(
                    key,
                    "export file is missing: it was removed just now, or outside of this service"
                );
                Self::Gone
            }
            other => Self::Objects(other),
        }
    }
}

/// A file whose signed URL was verified.
pub(crate) struct FoundFile {
    pub(crate) owner: FileOwner,
    pub(crate) view: FileView,
    pub(crate) name: String,
}

/// Verifies a signed download URL and finds its file.
pub(crate) async fn find_file(
    store: &ExportStore,
    keys: &KeyRing,
    id: &str,
    query: &BTreeMap<String, String>,
) -> Result<FoundFile, OpenFileError> {
    let now = now();
    let id = download_address::verify(keys, id, query, now)?;
    // Only complete exports get a URL.
    let job = store.find_of_any_organization(id).await?.ok_or(OpenFileError::Gone)?;
    let file = job.file_at(now).cloned().ok_or(OpenFileError::Gone)?;
    let with_mark = query.get("bom").is_some_and(|value| value == "1");
    let owner = FileOwner { export_id: job.id, organization_id: job.organization_id };
    Ok(FoundFile { owner, view: FileView::of(file, with_mark), name: job.file_name() })
}

/// Checks that the file exists, without reading it.
pub(crate) async fn check_file(objects: &Objects, view: &FileView) -> Result<(), OpenFileError> {
    objects.size(view.object_key()).await?;
    Ok(())
}

/// Streams a range of the view in constant memory.
pub(crate) async fn read_file(
    objects: &Objects,
    view: &FileView,
    range: &Range<u64>,
) -> Result<BoxStream<'static, Result<Bytes, ObjectError>>, OpenFileError> {
    let (mark, stored_range) = view.split(range);
    let mark = stream::iter((!mark.is_empty()).then(|| Ok(Bytes::from_static(mark))));
    if stored_range.is_empty() {
        return Ok(mark.boxed());
    }
    let stored = objects.read(view.object_key(), stored_range).await?;
    Ok(mark.chain(stored).boxed())
}
