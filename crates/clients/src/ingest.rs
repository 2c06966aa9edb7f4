//! Calls to ingest.

use assay_contracts::internal::{
    MAX_TRANSCRIPTS, ReadTranscripts, TicketReference, TicketWithoutTranscript, Transcript, Transcripts,
};
use assay_platform::auth::ServiceClaims;

use super::{ClientError, ServiceClient};

/// Client of ingest.
#[derive(Clone)]
pub struct IngestClient {
    service: ServiceClient,
}

impl IngestClient {
    /// Wraps `service`, whose audience must be ingest.
    pub fn new(service: ServiceClient) -> Self {
        Self { service }
    }

    /// Reads the transcripts of these tickets in order, as many as fit into one response, at least one. The tickets that were
    /// not read are in `unread`; tickets that no longer exist are left out.
    ///
    /// # Errors
    /// When ingest is unreachable or responds with an error.
    pub async fn read_transcripts(&self, tickets: &[TicketReference]) -> Result<Transcripts, ClientError> {
        let (requested, rest) = tickets.split_at(tickets.len().min(MAX_TRANSCRIPTS));
        let body = ReadTranscripts { tickets: requested.to_vec(), facts_only: false };
        let mut response: Transcripts =
            self.service.post_json(&ServiceClaims::Service, "/internal/v1/transcripts", &body).await?;
        response.unread.extend_from_slice(rest);
        Ok(response)
    }

    /// Attributes of a ticket without its transcript; `None` when it no longer exists.
    ///
    /// # Errors
    /// When ingest is unreachable or responds with an error.
    pub async fn read_ticket_facts(
        &self,
        ticket: TicketReference,
    ) -> Result<Option<TicketWithoutTranscript>, ClientError> {
        let body = ReadTranscripts { tickets: vec![ticket], facts_only: true };
        let response: Transcripts =
            self.service.post_json(&ServiceClaims::Service, "/internal/v1/transcripts", &body).await?;
        // An ingest of the previous release ignores `facts_only` and responds with the transcript.
        let of_transcript = |transcript: Transcript| TicketWithoutTranscript {
            organization_id: transcript.organization_id,
            ticket: transcript.ticket,
        };
        let transcripts = response.transcripts.into_iter().map(of_transcript);
        Ok(transcripts.chain(response.unreadable).find(|found| found.ticket.id == ticket.ticket_id))
    }
}
