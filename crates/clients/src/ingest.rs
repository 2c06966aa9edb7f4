//! Calls to ingest.

use assay_contracts::internal::{ReadTranscripts, TicketReference, Transcript, Transcripts};
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

    /// The transcripts of these tickets that (still) exist, in no particular order. At most 100 tickets a call.
    ///
    /// # Errors
    /// When ingest cannot be reached or cannot answer.
    pub async fn read_transcripts(
        &self,
        tickets: &[TicketReference],
    ) -> Result<Vec<Transcript>, ClientError> {
        let body = ReadTranscripts { tickets: tickets.to_vec() };
        let answer: Transcripts =
            self.service.post_json(&ServiceClaims::Service, "/internal/v1/transcripts", &body).await?;
        Ok(answer.transcripts)
    }
}
