//! `POST /internal/v1/transcripts`: transcripts for scoring-worker; `GET /internal/v1/tickets/{id}/transcript` for API clients and
//! the console.

use actix_web::http::header::ContentType;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::internal::ReadTranscripts;
use assay_contracts::json::JsonFault;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::runtime::blocking;
use assay_platform::web::{Caller, SMALL_BODY, WebError, json_with_etag};

use super::Services;
use crate::app::read_transcript::{ReadTranscriptError, read_transcript};
use crate::app::read_transcripts::{ReadTranscriptsError, read_transcripts};

/// Transcripts of any organization, for services only.
pub async fn read(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, WebError> {
    caller.require_service()?;
    let body = services.read_body(&request, payload, SMALL_BODY, &services.body_budget).await?;
    let wanted: ReadTranscripts = serde_json::from_slice(&body)
        .map_err(|error| WebError::new(ProblemCode::InvalidRequest, JsonFault::of(&error).to_string()))?;
    let transcripts = read_transcripts(&services.store, wanted).await?;
    // Serializing megabytes of JSON would block a thread that serves requests.
    let body = blocking(move || serde_json::to_vec(&transcripts))
        .await
        .map_err(|error| WebError::internal(&error))?;
    let body = body.map_err(|error| WebError::internal(&error))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}

/// The transcript of a ticket of the token's organization.
pub async fn read_one(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::TranscriptsRead)?.organization_id;
    let _permit = services.response_budget.begin().await?;
    let transcript = read_transcript(&services.store, organization_id, &id).await?;
    // Up to four megabytes: serialized off the request threads, as above.
    let body = blocking(move || serde_json::to_vec(&transcript))
        .await
        .map_err(|error| WebError::internal(&error))?;
    let body = body.map_err(|error| WebError::internal(&error))?;
    services.response_budget.limit(organization_id, json_with_etag(&request, body.into()))
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
