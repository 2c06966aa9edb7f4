//! `POST /internal/v1/conversations`: forwarded by the gateway from `POST /v1/assess`.

use actix_web::HttpResponse;
use actix_web::http::header::RETRY_AFTER;
use actix_web::web::Payload;
use assay_contracts::conversation::Conversation;
use assay_contracts::ids::TicketId;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::tenant::Scope;
use assay_platform::db::idempotency::{self, Fingerprint};
use assay_platform::web::{WebError, idempotency_key, parse_body, respond_with};

use super::{Call, read_body};
use crate::app::accept_conversation::{AcceptConversation, AcceptError};
use crate::domain::UnresolvedAuthors;

/// Draining a full outbox takes longer than the default of `Retry-After`.
const OUTBOX_RETRY_AFTER_SECONDS: &str = "10";

/// 202 with the receipt, once the conversation is committed.
pub async fn accept(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Assess)?;
    let key = idempotency_key(&call.request)?;
    let budget = call.services.body_budget.of_organization(organization_id);
    let mut body = read_body(&call, payload, call.services.max_body_bytes, &budget).await?;
    let conversation = parse_body(&body, Conversation::parse).await?;
    let idempotency = key.map(|key| (key, Fingerprint::of(&body)));
    // While it waits to be written, the parsed conversation counts in the budget in place of the bytes.
    body.free_bytes();
    let accept = AcceptConversation { organization_id, conversation, idempotency };
    respond_with(call.services.acceptance.accept(accept).await?)
}

impl From<AcceptError> for WebError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Authors(unresolved) => author_problem(unresolved).into(),
            AcceptError::Duplicate(ticket_id) => duplicate_import(ticket_id).into(),
            AcceptError::IdempotencyConflict => idempotency::conflict().into(),
            AcceptError::Registry(cause) => cause.into(),
            AcceptError::QueueFull(_) | AcceptError::TooSlow(_) | AcceptError::Stopping => {
                Self::unavailable(&error)
            }
            AcceptError::OutboxFull(_) => {
                Self::unavailable(&error).with_header(RETRY_AFTER, OUTBOX_RETRY_AFTER_SECONDS)
            }
            AcceptError::Receipt(_) | AcceptError::Compress(_) | AcceptError::Event(_) => {
                Self::internal(&error)
            }
            AcceptError::Database(cause) if cause.is_transient() => Self::unavailable(&cause),
            AcceptError::Database(cause) => Self::internal(&cause),
        }
    }
}

fn author_problem(unresolved: UnresolvedAuthors) -> Problem {
    let (code, detail, errors) = match unresolved {
        UnresolvedAuthors::Unknown(errors) => {
            (ProblemCode::UnknownAgent, "no such agent in your organization", errors)
        }
        UnresolvedAuthors::Mismatch(errors) => {
            (ProblemCode::AgentMismatch, "id and external_id name different agents", errors)
        }
    };
    let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
    Problem::new(code, format!("{detail}: {}", pointers.join(", "))).with_errors(errors)
}

fn duplicate_import(ticket_id: TicketId) -> Problem {
    let detail = format!("this identity was imported as ticket {ticket_id}");
    Problem { ticket_id: Some(ticket_id), ..Problem::new(ProblemCode::DuplicateImport, detail) }
}
