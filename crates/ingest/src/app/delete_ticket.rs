//! Deletes a ticket: its transcript, the names it brought, and through an event everything that others made of it.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::Deletion;
use assay_messaging::EncodeError;
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::TicketDeletion;
use crate::store::Store;

/// Why a ticket was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteTicketError {
    /// The organization has no such ticket (any more).
    #[error("there is no such ticket")]
    NotFound,
    /// The event cannot be encoded.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Deletes the ticket with this id, as the caller wrote it. Of several deletions of one ticket exactly one succeeds.
///
/// # Errors
/// [`DeleteTicketError`]; nothing is changed then.
pub async fn delete_ticket(
    store: &dyn Store,
    outbox: &Outbox,
    organization_id: OrganizationId,
    id: &str,
) -> Result<(), DeleteTicketError> {
    let ticket_id: TicketId = id.parse().map_err(|_| DeleteTicketError::NotFound)?;
    let deletion = TicketDeletion::new(organization_id, ticket_id, now())?;
    if !store.delete_ticket(deletion).await? {
        return Err(DeleteTicketError::NotFound);
    }
    outbox.wake();
    tracing::info!(%ticket_id, "ticket deleted");
    Ok(())
}

/// Whether a ticket was deleted, as far as that is remembered.
///
/// # Errors
/// When the database fails.
pub async fn find_deletion(
    store: &dyn Store,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Deletion, DatabaseError> {
    let Ok(id) = id.parse::<TicketId>() else { return Ok(Deletion { deleted_at: None }) };
    Ok(Deletion { deleted_at: store.find_deletion(organization_id, id).await? })
}
