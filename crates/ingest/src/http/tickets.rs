//! `GET` and `DELETE /internal/v1/tickets/{id}`, its `/deletion`, and the number of tickets.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::evaluations::CountQuery;
use assay_contracts::internal::{Deletion, TicketCount};
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::web::{Caller, WebError, all_query_pairs, invalid_query};

use super::Services;
use crate::app::delete_ticket::{DeleteTicketError, delete_ticket, find_deletion};
use crate::app::read_ticket::read_ticket;

/// Maximum number of tickets that a count considers: it reads the row of each for the date of the conversation.
const MAX_COUNTED: u32 = 10_000;

pub async fn read(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Tickets)?.organization_id;
    let _permit = services.response_budget.begin().await?;
    let ticket = read_ticket(&services.store, organization_id, &id).await?;
    let ticket = ticket.ok_or_else(not_found)?;
    services.response_budget.limit(organization_id, HttpResponse::Ok().json(ticket))
}

pub async fn delete(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Tickets)?.organization_id;
    delete_ticket(&services.store, &services.outbox, organization_id, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// When a ticket was deleted, and whether it is stored. Its evaluation is made and removed asynchronously, so the gateway asks here,
/// too.
pub async fn deletion(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<Json<Deletion>, WebError> {
    let organization_id = caller.tenant(Scope::Tickets)?.organization_id;
    Ok(Json(find_deletion(&services.store, organization_id, &id).await?))
}

/// Counts the tickets from the id `since` on whose conversations began between `from` and `to`; considers only the newest
/// [`MAX_COUNTED`].
pub async fn count(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<Json<TicketCount>, WebError> {
    let organization_id = caller.tenant(Scope::EvaluationsRead)?.organization_id;
    let CountQuery { period, since } = CountQuery::parse(all_query_pairs(&request)).map_err(invalid_query)?;
    let period = (period.from, period.to);
    Ok(Json(services.store.count_tickets(organization_id, since, period, MAX_COUNTED).await?))
}

impl From<DeleteTicketError> for WebError {
    fn from(error: DeleteTicketError) -> Self {
        match error {
            DeleteTicketError::NotFound => not_found(),
            DeleteTicketError::Event(cause) => Self::internal(&cause),
            DeleteTicketError::Database(cause) => cause.into(),
        }
    }
}

fn not_found() -> WebError {
    WebError::new(ProblemCode::TicketNotFound, "your organization has no ticket with this id")
}
