//! Sets the target sequence of jobs that were created while scoring-worker was unreachable.

use assay_clients::{ClientError, ScoringClient};
use assay_platform::db::DatabaseError;

use crate::store::ExportStore;

/// Jobs for each run; the next run continues.
const BATCH: u32 = 100;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SetTargetsError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Scoring(#[from] ClientError),
}

/// Uses the current sequence of scoring-worker, which is not below the one at the creation of the job. Targets set before an error
/// remain.
pub(crate) async fn set_target_sequences(
    store: &ExportStore,
    scoring: &ScoringClient,
) -> Result<(), SetTargetsError> {
    for job in store.jobs_without_target(BATCH).await? {
        let progress = scoring.progress(job.organization_id).await?;
        store.set_target_sequence(job.id, progress.evaluated).await?;
        tracing::info!(export = %job.id, target = progress.evaluated, "target sequence of the export set");
    }
    Ok(())
}
