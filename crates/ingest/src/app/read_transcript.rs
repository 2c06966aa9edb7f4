//! Reads the transcript of one ticket: `GET /v1/tickets/{id}/transcript`.

use assay_contracts::evaluations::TicketTranscript;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{StoredTranscript, TicketReference};
use assay_platform::db::DatabaseError;
use serde_json::value::RawValue;

use super::read_transcripts::TARGET_BYTES;
use crate::store::Store;

#[derive(Debug, thiserror::Error)]
pub enum ReadTranscriptError {
    #[error("the organization has no such ticket")]
    NotFound,
    #[error("the transcript was removed at the end of its retention period")]
    Expired,
    #[error("the stored transcript of {0} cannot be decoded")]
    Unreadable(TicketId),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The transcript of a ticket by its id as text; the messages are the stored JSON.
pub async fn read_transcript(
    store: &Store,
    organization_id: OrganizationId,
    id: &str,
) -> Result<TicketTranscript<Box<RawValue>>, ReadTranscriptError> {
    let ticket_id: TicketId = id.parse().map_err(|_| ReadTranscriptError::NotFound)?;
    let found =
        store.read_transcripts(vec![TicketReference { organization_id, ticket_id }], TARGET_BYTES).await?;
    if let Some(transcript) = found.transcripts.into_iter().next() {
        return Ok(into_public(transcript));
    }
    if !found.unreadable.is_empty() {
        return Err(ReadTranscriptError::Unreadable(ticket_id));
    }
    if found.deleted.is_empty() && store.is_expired(organization_id, ticket_id).await? {
        return Err(ReadTranscriptError::Expired);
    }
    Err(ReadTranscriptError::NotFound)
}

fn into_public(transcript: StoredTranscript) -> TicketTranscript<Box<RawValue>> {
    let ticket = transcript.ticket;
    TicketTranscript {
        ticket_id: ticket.id,
        external_id: ticket.external_id,
        source: ticket.source,
        source_account_id: ticket.source_account_id,
        subject: ticket.subject.unwrap_or_default(),
        started_at: ticket.started_at,
        ended_at: ticket.ended_at,
        imported_at: ticket.imported_at,
        agents: ticket.agents,
        messages: transcript.conversation.messages,
    }
}
