//! Queues an export job: specification, "POST /v1/evaluations/exports".

use assay_clients::ScoringClient;
use assay_contracts::event::ExportRequested;
use assay_contracts::export::NewExport;
use assay_contracts::ids::OrganizationId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{Earlier, Fingerprint, IdempotencyKey, Record, StoredAnswer};
use assay_platform::runtime::{new_id, now};

use crate::domain::job::Job;
use crate::store::{Created, Creation, ExportStore};

const CREATED: u16 = 201;

/// A request to create an export.
pub(crate) struct CreateExport {
    /// The tenant.
    pub(crate) organization_id: OrganizationId,
    /// What to export.
    pub(crate) export: NewExport,
    /// The request's idempotency key and the fingerprint of its body.
    pub(crate) idempotency: Option<(IdempotencyKey, Fingerprint)>,
}

/// Why no export was created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateExportError {
    /// The idempotency key belongs to another request.
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    /// The answer cannot be written as JSON.
    #[error("the export cannot be written as JSON: {0}")]
    Answer(#[from] serde_json::Error),
    /// The event cannot be encoded.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Queues a job and answers with it; the same request again gets the same answer, byte for byte.
///
/// # Errors
/// [`CreateExportError`]; nothing is stored then.
pub(crate) async fn create_export(
    store: &dyn ExportStore,
    outbox: &Outbox,
    scoring: &ScoringClient,
    request: CreateExport,
) -> Result<StoredAnswer, CreateExportError> {
    let organization_id = request.organization_id;
    let awaited_evaluations = evaluated(scoring, organization_id).await;
    let job = Job::new(new_id(), organization_id, &request.export, now());
    let answer = StoredAnswer {
        status: CREATED,
        location: Some(format!("/v1/evaluations/exports/{}", job.id)),
        body: serde_json::to_string(&job.clone().into_export(None))?,
    };
    let requested = ExportRequested { organization_id, export_id: job.id, kind: job.kind };
    let event = OutgoingEvent::new(new_id(), job.created_at, &requested)?;
    let record = request.idempotency.map(|(key, fingerprint)| Record {
        organization_id,
        key,
        fingerprint,
        answer: answer.clone(),
    });
    match store.create(Creation { job, event, record, awaited_evaluations }).await? {
        Created::New => {
            outbox.wake();
            Ok(answer)
        }
        Created::Earlier(Earlier::SameRequest(first_answer)) => Ok(first_answer),
        Created::Earlier(Earlier::OtherRequest) => Err(CreateExportError::IdempotencyConflict),
    }
}

/// How many evaluations the file shall hold. Without scoring-worker that is not known, which is no reason to refuse the
/// export: it is found out later.
async fn evaluated(scoring: &ScoringClient, organization_id: OrganizationId) -> Option<i64> {
    match scoring.progress(organization_id).await {
        Ok(progress) => Some(progress.evaluated),
        Err(error) => {
            tracing::warn!(cause = %error, "export is created without knowing how many evaluations it shall hold");
            None
        }
    }
}
