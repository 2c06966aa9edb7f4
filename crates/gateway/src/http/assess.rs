//! `POST /v1/assess`: accepts a conversation for evaluation.

use actix_web::body::to_bytes_limited;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use actix_web::{HttpResponse, ResponseError};
use assay_contracts::conversation::{Conversation, ImportRequest};
use assay_contracts::problem::Problem;
use assay_contracts::ticket::ImportReceipt;
use assay_platform::web::WebError;

use super::keyed_request::KeyedRequest;
use super::request_body::read_validated;
use super::responses::{
    BadRequest, CommonProblems, IdempotencyConflict, IdempotencyHeader, ImportBodyProblems,
};
use crate::metrics;

/// Maximum size of a problem of ingest, in bytes. One has at most twenty errors.
const MAX_PROBLEM_BYTES: usize = 256 * 1024;

/// Statuses of ingest's refusals that are noted for the console. Not 409: duplicates are not kept there, and may be many.
const NOTED_STATUSES: [StatusCode; 3] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::UNPROCESSABLE_ENTITY];

/// Score a conversation
///
/// Accepts a transcript. The answer is a receipt: the conversation is safe, and is evaluated afterwards.
#[utoipa::path(
    post,
    path = "/v1/assess",
    operation_id = "assess",
    tag = "Conversations",
    params(IdempotencyHeader),
    request_body = ImportRequest,
    responses(
        (status = 202, description = "Accepted: stored and queued for evaluation", body = ImportReceipt,
         headers(("Location" = String, description = "Address of the ticket"))),
        BadRequest,
        (status = 404, description = "An AI author names an agent that is not registered", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Conflict: imported before; `ticket_id` names the first import", body = Problem, content_type = "application/problem+json"),
        ImportBodyProblems,
        IdempotencyConflict,
        CommonProblems,
    ),
)]
pub(crate) async fn assess(request: KeyedRequest, payload: Payload) -> Result<HttpResponse, WebError> {
    let answer = submit(&request, payload).await;
    metrics::count_import(match &answer {
        Ok(answer) => answer.status().as_u16(),
        Err(error) => error.status_code().as_u16(),
    });
    match answer {
        Ok(answer) if NOTED_STATUSES.contains(&answer.status()) => note_relayed(answer, &request).await,
        Ok(answer) => Ok(answer),
        Err(error) => {
            request.gateway.refusals.note(request.caller.organization_id, error.problem());
            Err(error)
        }
    }
}

async fn submit(request: &KeyedRequest, payload: Payload) -> Result<HttpResponse, WebError> {
    let max_bytes = request.gateway.config.max_body_bytes;
    let body = read_validated(request, payload, max_bytes, Conversation::parse).await?;
    request.post(&request.gateway.ingest, "/internal/v1/conversations", body.clone()).await
}

/// Notes a refusal of ingest. Its body, a problem, is relayed unchanged.
async fn note_relayed(answer: HttpResponse, request: &KeyedRequest) -> Result<HttpResponse, WebError> {
    let (head, body) = answer.into_parts();
    let body = to_bytes_limited(body, MAX_PROBLEM_BYTES).await;
    // The outer error is a body beyond the limit, the inner one a failure while it is read.
    let body = body.map_err(|error| WebError::unavailable(&error))?;
    let body = body.map_err(|error| WebError::unavailable(&error))?;
    if let Ok(problem) = serde_json::from_slice::<Problem>(&body) {
        request.gateway.refusals.note(request.caller.organization_id, &problem);
    }
    Ok(head.set_body(body).map_into_boxed_body())
}
