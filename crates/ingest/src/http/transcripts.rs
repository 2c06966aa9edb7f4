//! `POST /internal/v1/transcripts`: transcripts for scoring-worker; `GET /internal/v1/tickets/{id}/transcript` for API clients and
//! the console.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::{Path, Payload};
use assay_contracts::internal::ReadTranscripts;
use assay_contracts::json::JsonFault;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::runtime::blocking;
use assay_platform::web::{SMALL_BODY, WebError, respond_json_with_etag};
use serde::Serialize;

use super::{Call, read_body};
use crate::app::read_transcript::{ReadTranscriptError, read_transcript};
use crate::app::read_transcripts::{ReadTranscriptsError, read_transcripts};

/// Transcripts of any organization, for services only.
pub async fn read_many(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    call.caller.require_service()?;
    let body = read_body(&call, payload, SMALL_BODY, &call.services.body_budget).await?;
    let wanted: ReadTranscripts = serde_json::from_slice(&body)
        .map_err(|error| WebError::new(ProblemCode::InvalidRequest, JsonFault::of(&error).to_string()))?;
    let transcripts = read_transcripts(&call.services.store, wanted).await?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(to_json(transcripts).await?))
}

/// The transcript of a ticket of the token's organization.
pub async fn read_one(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::TranscriptsRead)?;
    let _permit = call.services.response_budget.build_permit().await?;
    let transcript = read_transcript(&call.services.store, organization_id, &id).await?;
    let body = to_json(transcript).await?;
    call.services.response_budget.limit(organization_id, respond_json_with_etag(&call.request, body.into()))
}

/// Serializes on a thread for blocking work: megabytes of JSON would block one that serves requests.
async fn to_json(transcripts: impl Serialize + Send + 'static) -> Result<Vec<u8>, WebError> {
    let body = blocking(move || serde_json::to_vec(&transcripts)).await;
    let body = body.map_err(|error| WebError::internal(&error))?;
    body.map_err(|error| WebError::internal(&error))
}

impl From<ReadTranscriptError> for WebError {
    fn from(error: ReadTranscriptError) -> Self {
        match error {
            ReadTranscriptError::NotFound => {
                Self::new(ProblemCode::TicketNotFound, "there is none with this id in your organization")
            }
            ReadTranscriptError::Expired => Self::new(
                ProblemCode::TranscriptExpired,
                "it was removed at the end of its retention period; the evaluation may be kept longer",
            ),
            ReadTranscriptError::Unreadable(_) => Self::internal(&error),
            ReadTranscriptError::Database(cause) => cause.into(),
        }
    }
}

impl From<ReadTranscriptsError> for WebError {
    fn from(error: ReadTranscriptsError) -> Self {
        match error {
            ReadTranscriptsError::TooMany => Self::new(ProblemCode::InvalidRequest, error.to_string()),
            ReadTranscriptsError::Database(cause) => cause.into(),
        }
    }
}
