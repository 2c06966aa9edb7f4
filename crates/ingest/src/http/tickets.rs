//! `GET` and `DELETE /internal/v1/tickets/{id}`, its `/deletion`, and the number of tickets.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use assay_contracts::evaluations::CountQuery;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::{Deletion, TicketCount};
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::web::{WebError, all_query_pairs, invalid_query};

use super::Call;
use crate::app::delete_ticket::{DeleteTicketError, delete_ticket, find_deletion};

/// Maximum number of tickets that a count considers: it reads the row of each for the date of the conversation.
const MAX_CONSIDERED: u32 = 10_000;

pub async fn read(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Tickets)?;
    let _permit = call.services.response_budget.build_permit().await?;
    let id: TicketId = id.parse().map_err(|_| not_found())?;
    let ticket = call.services.store.find_ticket(organization_id, id).await?.ok_or_else(not_found)?;
    call.services.response_budget.limit(organization_id, HttpResponse::Ok().json(ticket))
}

pub async fn delete(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Tickets)?;
    delete_ticket(&call.services.store, &call.services.outbox, organization_id, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// When a ticket was deleted, and whether it is stored. Its evaluation is made and removed asynchronously, so the gateway asks here,
/// too.
pub async fn deletion(call: Call, id: Path<String>) -> Result<Json<Deletion>, WebError> {
    let organization_id = call.organization_with(Scope::Tickets)?;
    Ok(Json(find_deletion(&call.services.store, organization_id, &id).await?))
}

/// Counts the tickets from the id `since` on whose conversations began between `from` and `to`; considers only the newest
/// [`MAX_CONSIDERED`].
pub async fn count(call: Call) -> Result<Json<TicketCount>, WebError> {
    let organization_id = call.organization_with(Scope::EvaluationsRead)?;
    let CountQuery { period, since } =
        CountQuery::parse(all_query_pairs(&call.request)).map_err(invalid_query)?;
    let period = (period.from, period.to);
    Ok(Json(call.services.store.count_tickets(organization_id, since, period, MAX_CONSIDERED).await?))
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
