//! Calls to ingest.

use assay_contracts::internal::{MAX_TRANSCRIPTS, ReadTranscripts, TicketReference, Transcripts};
use assay_platform::auth::ServiceClaims;

use super::{ClientError, Service};

/// ingest as others see it.
#[derive(Clone)]
pub struct IngestClient {
    service: Service,
}

impl IngestClient {
    /// Through `service`, which must be made for ingest.
    pub fn new(service: Service) -> Self {
        Self { service }
    }

    /// The transcripts of the first of these tickets, as many as fit into one answer; those that no longer exist are left
    /// out. What was not looked at comes back as `unread`, and every call looks at one ticket at least.
    ///
    /// # Errors
    /// When ingest cannot be reached or cannot answer.
    pub async fn read_transcripts(&self, tickets: &[TicketReference]) -> Result<Transcripts, ClientError> {
        let (now, later) = tickets.split_at(tickets.len().min(MAX_TRANSCRIPTS));
        let body = ReadTranscripts { tickets: now.to_vec() };
        let mut answer: Transcripts =
            self.service.post_json(&ServiceClaims::Service, "/internal/v1/transcripts", &body).await?;
        answer.unread.extend_from_slice(later);
        Ok(answer)
    }
}
