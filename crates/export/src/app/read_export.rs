//! Reads one export, or the address of its file: specification, "GET /v1/evaluations/exports/{exportId}" and
//! "GET /v1/evaluations/exports/{id}/download".

use assay_contracts::export::{DownloadAddress, Export};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_platform::auth::SigningKeys;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::job::{Job, JobState};
use crate::domain::showing::PublicBase;
use crate::store::ExportStore;

/// Why there is no export or no address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadExportError {
    /// The organization has no such export.
    #[error("there is no such export")]
    NotFound,
    /// Its file is not written yet.
    #[error("the export is not complete yet")]
    NotReady,
    /// It failed for good.
    #[error("the export failed: {0}")]
    Failed(String),
    /// Its file was removed after its retention time.
    #[error("the file is no longer kept")]
    Gone,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The export. An id that cannot be one names no export.
///
/// # Errors
/// [`ReadExportError`].
pub(crate) async fn read_export(
    store: &dyn ExportStore,
    keys: &SigningKeys,
    base: &PublicBase,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Export, ReadExportError> {
    let job = find(store, organization_id, id).await?;
    Ok(base.show(job, keys, now()))
}

/// A fresh signed address of the export's file.
///
/// # Errors
/// [`ReadExportError`].
pub(crate) async fn find_download(
    store: &dyn ExportStore,
    keys: &SigningKeys,
    base: &PublicBase,
    organization_id: OrganizationId,
    id: &str,
) -> Result<DownloadAddress, ReadExportError> {
    let job = find(store, organization_id, id).await?;
    match &job.state {
        JobState::Pending | JobState::Running => Err(ReadExportError::NotReady),
        JobState::Failed { message } => Err(ReadExportError::Failed(message.clone())),
        JobState::Complete(_) => {
            let download_url = base.address_of(&job, keys, now()).ok_or(ReadExportError::Gone)?;
            Ok(DownloadAddress { download_url })
        }
    }
}

async fn find(
    store: &dyn ExportStore,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Job, ReadExportError> {
    let id: ExportId = id.parse().map_err(|_| ReadExportError::NotFound)?;
    store.find(organization_id, id).await?.ok_or(ReadExportError::NotFound)
}
