//! `/v1/tickets/{id}…`: a ticket, its deletion, its evaluation and its transcript.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use assay_contracts::evaluation::{TicketEvaluation, UnscoredStatus};
use assay_contracts::evaluations::TranscriptDocument;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::Deletion;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::ticket::Ticket;
use assay_platform::web::WebError;
use futures_util::future::try_join;
use reqwest::Method;

use super::context::{path_id, ticket_not_found};
use super::keyed_request::KeyedRequest;
use super::responses::{CommonProblems, IfNoneMatchHeader, NotFound, PublicProblems};
use crate::app::{ServiceCall, forward};

/// Get a ticket
///
/// Without a valid API key the answer is the same as for an unknown ticket.
#[utoipa::path(
    get,
    path = "/v1/tickets/{id}",
    operation_id = "getTicket",
    tag = "Tickets",
    params(("id" = String, Path, description = "Ticket id, as in the import's receipt")),
    responses(
        (status = 200, description = "The ticket", body = Ticket),
        (status = 403, description = "The API key lacks the scope `tickets`", body = Problem, content_type = "application/problem+json"),
        NotFound,
        PublicProblems,
    ),
)]
pub(crate) async fn get_ticket(request: KeyedRequest, id: Path<String>) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: TicketId = path_id(&id, ProblemCode::TicketNotFound)?;
    let path = format!("/internal/v1/tickets/{id}");
    // The gateway's own 404: the answer must be the same as without a valid key.
    ticket_or_not_found(forward(request.get(&request.gateway.ingest, &path, &[])).await?)
}

/// Delete a ticket
///
/// Its transcript, the display names that it brought and its evaluation are deleted for good, and exports that are created
/// later do not hold it (their read model follows within seconds). From the answer on, the ticket and its evaluation answer
/// 404. Its identity stays used: importing the conversation again answers 409. Files of exports that were made before keep
/// their rows until the files' retention time has passed.
#[utoipa::path(
    delete,
    path = "/v1/tickets/{id}",
    operation_id = "deleteTicket",
    tag = "Tickets",
    params(("id" = String, Path, description = "Ticket id, as in the import's receipt")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 404, description = "Resource not found, or deleted before", body = Problem, content_type = "application/problem+json"),
        CommonProblems,
    ),
)]
pub(crate) async fn delete_ticket(request: KeyedRequest, id: Path<String>) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: TicketId = path_id(&id, ProblemCode::TicketNotFound)?;
    let path = format!("/internal/v1/tickets/{id}");
    let get = request.get(&request.gateway.ingest, &path, &[]);
    ticket_or_not_found(forward(ServiceCall { method: Method::DELETE, ..get }).await?)
}

/// Get a ticket's evaluation
///
/// `pending` until it is there.
#[utoipa::path(
    get,
    path = "/v1/tickets/{id}/evaluation",
    operation_id = "getEvaluation",
    tag = "Tickets",
    params(("id" = String, Path, description = "Ticket id, as in the import's receipt")),
    responses(
        (status = 200, description = "The evaluation, or why there is none (yet)", body = TicketEvaluation),
        NotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn get_evaluation(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: TicketId = path_id(&id, ProblemCode::TicketNotFound)?;
    let path = format!("/internal/v1/tickets/{id}/evaluation");
    // The evaluation is made and removed asynchronously; ingest knows at once that a ticket was accepted or deleted.
    let (evaluation, deletion) =
        try_join(forward(request.get(&request.gateway.scoring, &path, &[])), find_deletion(&request, id))
            .await?;
    let is_evaluated = evaluation.status() != StatusCode::NOT_FOUND;
    if deletion.deleted_at.is_some() || !is_evaluated && !deletion.exists {
        return Err(ticket_not_found());
    }
    if is_evaluated {
        return Ok(evaluation);
    }
    let status = UnscoredStatus::Pending;
    Ok(HttpResponse::Ok().json(TicketEvaluation::Unscored { ticket_id: id, status, error_message: None }))
}

/// Get a ticket's transcript
///
/// The conversation as it was imported. `transcript-expired` once it was removed at the end of its retention period. Needs the
/// scope `transcripts:read`.
#[utoipa::path(
    get,
    path = "/v1/tickets/{id}/transcript",
    operation_id = "getTranscript",
    tag = "Tickets",
    params(("id" = String, Path, description = "Ticket id, as in the import's receipt"), IfNoneMatchHeader),
    responses(
        (status = 200, description = "The transcript", body = TranscriptDocument, headers(("ETag" = String, description = "For `If-None-Match`"))),
        (status = 304, description = "Unchanged since the response with the `ETag` of `If-None-Match`"),
        (status = 404, description = "Resource not found, or its transcript is no longer kept", body = Problem, content_type = "application/problem+json"),
        CommonProblems,
    ),
)]
pub(crate) async fn get_transcript(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: TicketId = path_id(&id, ProblemCode::TicketNotFound)?;
    let path = format!("/internal/v1/tickets/{id}/transcript");
    forward(request.get(&request.gateway.ingest, &path, &["if-none-match"])).await
}

async fn find_deletion(request: &KeyedRequest, id: TicketId) -> Result<Deletion, WebError> {
    let path = format!("/internal/v1/tickets/{id}/deletion");
    Ok(request.gateway.ingest.get_json(&request.caller.claims, &path).await?)
}

fn ticket_or_not_found(answer: HttpResponse) -> Result<HttpResponse, WebError> {
    if answer.status() == StatusCode::NOT_FOUND { Err(ticket_not_found()) } else { Ok(answer) }
}
