//! `GET /internal/v1/tickets/{id}`.

use actix_web::web::{Data, Json, Path};
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_contracts::ticket::Ticket;
use assay_platform::web::{Caller, WebError};

use super::Services;
use crate::app::read_ticket::read_ticket;

/// A ticket of the caller's organization.
pub async fn read(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<Json<Ticket>, WebError> {
    let organization_id = caller.tenant(Scope::Tickets)?.organization_id;
    let ticket = read_ticket(services.store.as_ref(), organization_id, &id).await?;
    ticket.map(Json).ok_or_else(|| {
        WebError::new(ProblemCode::TicketNotFound, "your organization has no ticket with this id")
    })
}
