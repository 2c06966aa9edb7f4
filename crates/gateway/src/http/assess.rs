//! `POST /v1/assess`: accepts a conversation for evaluation.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use assay_contracts::conversation::{Conversation, ImportRequest};
use assay_contracts::problem::Problem;
use assay_contracts::ticket::ImportReceipt;
use assay_platform::web::WebError;

use super::authentication::Authenticated;
use super::context::{Gateway, copy_headers};
use super::request_body::read_validated;
use super::responses::{
    BadRequest, CommonProblems, IdempotencyConflict, IdempotencyHeader, ImportBodyProblems,
};
use crate::app::{Forward, forward};
use crate::metrics;

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
    security(("api_key" = []))
)]
pub(crate) async fn assess(
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    let answer = submit(&request, payload, &gateway, &caller).await;
    metrics::count_import(match &answer {
        Ok(answer) => answer.status().as_u16(),
        Err(error) => error.status_code().as_u16(),
    });
    answer
}

async fn submit(
    request: &HttpRequest,
    payload: Payload,
    gateway: &Gateway,
    caller: &Authenticated,
) -> Result<HttpResponse, WebError> {
    let max_bytes = gateway.config.max_body_bytes;
    let body = read_validated(gateway, caller, request, payload, max_bytes, Conversation::parse).await?;
    forward(Forward {
        service: &gateway.ingest,
        claims: &caller.claims,
        method: reqwest::Method::POST,
        path: "/internal/v1/conversations",
        headers: copy_headers(request, &["idempotency-key"]),
        body: Some(body.clone()),
    })
    .await
}
