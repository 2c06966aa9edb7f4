//! Opens the file behind a signed address.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_platform::auth::SigningKeys;
use assay_platform::db::DatabaseError;
use assay_platform::objects::{ObjectError, Objects};
use assay_platform::runtime::now;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};

use crate::domain::download_address::{self, InvalidAddress};
use crate::domain::file_view::FileView;
use crate::store::ExportStore;

/// Why a file is not given out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFileError {
    /// The address is not ours, was altered or has expired.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The file was removed after its retention time.
    #[error("the file is no longer kept")]
    Gone,
    /// The object store failed.
    #[error(transparent)]
    Objects(ObjectError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<ObjectError> for OpenFileError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::NotFound(key) => {
                tracing::warn!(
                    key,
                    "file of an export is missing: it was removed just now, or by somebody else"
                );
                Self::Gone
            }
            other => Self::Objects(other),
        }
    }
}

/// A file that may be given out.
pub(crate) struct FoundFile {
    pub(crate) view: FileView,
    pub(crate) name: String,
}

/// Checks a signed address and finds its file.
///
/// # Errors
/// [`OpenFileError`].
pub(crate) async fn find_file(
    store: &dyn ExportStore,
    keys: &SigningKeys,
    id: &str,
    query: &BTreeMap<String, String>,
) -> Result<FoundFile, OpenFileError> {
    let now = now();
    let id = download_address::verify(keys, id, query, now)?;
    // Only a complete export is ever given an address.
    let job = store.find_signed(id).await?.ok_or(OpenFileError::Gone)?;
    let file = job.file_at(now).cloned().ok_or(OpenFileError::Gone)?;
    let with_mark = query.get("bom").is_some_and(|value| value == "1");
    Ok(FoundFile { view: FileView::of(file, with_mark), name: job.file_name() })
}

/// Checks that the file is there, without reading it.
///
/// # Errors
/// [`OpenFileError`].
pub(crate) async fn check_file(objects: &Objects, view: &FileView) -> Result<(), OpenFileError> {
    objects.size(view.object_key()).await?;
    Ok(())
}

/// Streams a range of the view; memory stays constant whatever its length.
///
/// # Errors
/// [`OpenFileError`], before anything is sent.
pub(crate) async fn read_file(
    objects: &Objects,
    view: &FileView,
    range: &Range<u64>,
) -> Result<BoxStream<'static, Result<Bytes, ObjectError>>, OpenFileError> {
    let (first, rest) = view.split(range);
    let first = stream::iter((!first.is_empty()).then(|| Ok(Bytes::from_static(first))));
    if rest.is_empty() {
        return Ok(first.boxed());
    }
    let rest = objects.read(view.object_key(), rest).await?;
    Ok(first.chain(rest).boxed())
}
