//! `POST /internal/v1/transcripts`: transcripts for scoring-worker.

use actix_web::http::header::ContentType;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::internal::ReadTranscripts;
use assay_contracts::json::JsonFault;
use assay_contracts::problem::ProblemCode;
use assay_platform::runtime::blocking;
use assay_platform::web::{Caller, WebError};

use super::Services;
use crate::app::read_transcripts::{ReadTranscriptsError, read_transcripts};

/// Transcripts of any organization, for services only.
pub async fn read(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, WebError> {
    caller.require_service()?;
    let body = services.body(&request, payload).await?;
    let wanted: ReadTranscripts = serde_json::from_slice(&body)
        .map_err(|error| WebError::new(ProblemCode::InvalidRequest, JsonFault::of(&error).to_string()))?;
    let transcripts = read_transcripts(services.store.as_ref(), wanted).await?;
    // Serializing megabytes of JSON would block a thread that serves requests.
    let body = blocking(move || serde_json::to_vec(&transcripts))
        .await
        .map_err(|error| WebError::internal(&error))?;
    let body = body.map_err(|error| WebError::internal(&error))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(body))
}

impl From<ReadTranscriptsError> for WebError {
    fn from(error: ReadTranscriptsError) -> Self {
        match error {
            ReadTranscriptsError::TooMany => Self::new(ProblemCode::InvalidRequest, error.to_string()),
            ReadTranscriptsError::Database(cause) => cause.into(),
        }
    }
}
