//! Reads a ticket (specification, "GET /v1/tickets/{id}").

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::ticket::Ticket;
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// A ticket by its id as text; `None` when the organization has no such ticket or the text is not an id.
pub async fn read_ticket(
    store: &Store,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Option<Ticket>, DatabaseError> {
    let Ok(id) = id.parse::<TicketId>() else { return Ok(None) };
    store.find_ticket(organization_id, id).await
}
