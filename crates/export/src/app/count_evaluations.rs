//! Finds out how many evaluations the files of jobs shall hold that were created while scoring-worker did not answer.

use assay_clients::{ClientError, ScoringClient};
use assay_platform::db::DatabaseError;

use crate::store::ExportStore;

/// Jobs of one round: a later one has the rest.
const BATCH: u32 = 100;

/// Why a round ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CountError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// scoring-worker does not answer (yet).
    #[error(transparent)]
    Scoring(#[from] ClientError),
}

/// Asks scoring-worker for each of these jobs. What there is now includes what there was at their creation.
///
/// # Errors
/// [`CountError`]; what was found out until then is kept.
pub(crate) async fn count_evaluations(
    store: &dyn ExportStore,
    scoring: &ScoringClient,
) -> Result<(), CountError> {
    for job in store.uncounted_jobs(BATCH).await? {
        let progress = scoring.progress(job.organization_id).await?;
        store.set_awaited(job.id, progress.evaluated).await?;
        tracing::info!(export = %job.id, evaluations = progress.evaluated, "export knows now what it waits for");
    }
    Ok(())
}
