//! Queues an export job: `POST /v1/evaluations/exports`.

use assay_clients::ScoringClient;
use assay_contracts::event::ExportRequested;
use assay_contracts::export::NewExport;
use assay_contracts::ids::OrganizationId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{Fingerprint, IdempotencyKey, KeyReuse, Record, RecordedResponse};
use assay_platform::runtime::{new_id, now};

use crate::domain::job::Job;
use crate::store::{Created, Creation, ExportStore};

/// A request to create an export.
pub(crate) struct CreateExport {
    pub(crate) organization_id: OrganizationId,
    pub(crate) export: NewExport,
    pub(crate) idempotency: Option<(IdempotencyKey, Fingerprint)>,
    /// Open exports that the organization may have.
    pub(crate) max_open: u32,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateExportError {
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    #[error("the organization has {0} open exports")]
    TooManyOpen(u32),
    #[error("the export cannot be written as JSON: {0}")]
    Response(#[from] serde_json::Error),
    #[error(transparent)]
    Event(#[from] EncodeError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Queues a job. A replayed request gets the recorded response, byte for byte. Nothing is stored on an error.
pub(crate) async fn create_export(
    store: &ExportStore,
    outbox: &Outbox,
    scoring: &ScoringClient,
    request: CreateExport,
) -> Result<RecordedResponse, CreateExportError> {
    let organization_id = request.organization_id;
    let target_sequence = find_target_sequence(scoring, organization_id).await;
    let job = Job::new(new_id(), organization_id, &request.export, now());
    let export = job.clone().into_export(None, job.created_at);
    let response = RecordedResponse::created(format!("/v1/evaluations/exports/{}", job.id), &export)?;
    let requested = ExportRequested { organization_id, export_id: job.id, kind: job.kind };
    let event = OutgoingEvent::new(new_id(), job.created_at, &requested)?;
    let record = Record::of(organization_id, request.idempotency, &response);
    let max_open = request.max_open;
    match store.create(Creation { job, event, record, target_sequence, max_open }).await? {
        Created::New => {
            outbox.wake();
            Ok(response)
        }
        Created::KeyReused(KeyReuse::Replay(first_response)) => Ok(first_response),
        Created::TooManyOpen => Err(CreateExportError::TooManyOpen(max_open)),
        Created::KeyReused(KeyReuse::Conflict) => Err(CreateExportError::IdempotencyConflict),
    }
}

/// The evaluation sequence the file must include. If scoring-worker is unreachable, the export is created without a target,
/// and a periodic task sets it later.
async fn find_target_sequence(scoring: &ScoringClient, organization_id: OrganizationId) -> Option<i64> {
    match scoring.progress(organization_id).await {
        Ok(progress) => Some(progress.evaluated),
        Err(error) => {
            tracing::warn!(cause = %error, "export is created without a target sequence: scoring-worker does not answer");
            None
        }
    }
}
