//! Deletes a ticket: its transcript, its display names, and, through an event, everything derived from it in other roles.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{Deletion, TicketReference};
use assay_messaging::EncodeError;
use assay_messaging::outbox::Outbox;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;

use crate::domain::TicketDeletion;
use crate::store::Store;

/// A ticket was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteTicketError {
    /// The organization has no such ticket, or it was deleted before.
    #[error("there is no such ticket")]
    NotFound,
    #[error(transparent)]
    Event(#[from] EncodeError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Deletes a ticket by its id as text. Of several concurrent deletions of one ticket exactly one succeeds.
pub async fn delete_ticket(
    store: &Store,
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

/// When a ticket was deleted, as long as its tombstone is kept, and whether it is stored. Reads no transcript.
pub async fn find_deletion(
    store: &Store,
    organization_id: OrganizationId,
    id: &str,
) -> Result<Deletion, DatabaseError> {
    let Ok(ticket_id) = id.parse::<TicketId>() else {
        return Ok(Deletion { deleted_at: None, exists: false });
    };
    let deleted_at = store.find_deletion(organization_id, ticket_id).await?;
    let facts = store.read_ticket_facts(vec![TicketReference { organization_id, ticket_id }]).await?;
    Ok(Deletion { deleted_at, exists: !facts.is_empty() })
}
