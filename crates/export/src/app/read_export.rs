//! Reads one export, or the download URL of its file: `GET /v1/evaluations/exports/{id}` and `…/{id}/download`.

use assay_contracts::export::{DownloadAddress, Export};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_platform::auth::KeyRing;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::job::{Job, JobState};
use crate::domain::public_base_url::PublicBaseUrl;
use crate::store::ExportStore;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadExportError {
    #[error("there is no such export")]
    NotFound,
    #[error("the export is not complete yet")]
    NotReady,
    #[error("the export failed: {0}")]
    Failed(String),
    #[error("the file is no longer kept")]
    Gone,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// There is no export with a malformed id.
pub(crate) async fn read_export(
    store: &ExportStore,
    keys: &KeyRing,
    base: &PublicBaseUrl,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Export, ReadExportError> {
    let job = find(store, organization_id, id).await?;
    Ok(base.to_response(job, keys, now()))
}

pub(crate) async fn find_download(
    store: &ExportStore,
    keys: &KeyRing,
    base: &PublicBaseUrl,
    organization_id: OrganizationId,
    id: &str,
) -> Result<DownloadAddress, ReadExportError> {
    let job = find(store, organization_id, id).await?;
    match &job.state {
        JobState::Pending | JobState::Running => Err(ReadExportError::NotReady),
        JobState::Failed { message } => Err(ReadExportError::Failed(message.clone())),
        JobState::Complete(_) => {
            let download_url = base.download_url(&job, keys, now()).ok_or(ReadExportError::Gone)?;
            Ok(DownloadAddress { download_url })
        }
    }
}

async fn find(
    store: &ExportStore,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Job, ReadExportError> {
    let id: ExportId = id.parse().map_err(|_| ReadExportError::NotFound)?;
    store.find(organization_id, id).await?.ok_or(ReadExportError::NotFound)
}
