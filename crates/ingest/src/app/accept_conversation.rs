//! Accepts the conversation of a `POST /v1/assess`. It is committed before the request is answered.

use std::sync::Arc;
use std::time::Duration;

use assay_clients::ClientError;
use assay_contracts::conversation::Conversation;
use assay_contracts::event::ConversationAccepted;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::ticket::{ImportReceipt, ReceiptStatus};
use assay_messaging::outbox::{Backlog, BacklogFull};
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{Fingerprint, IdempotencyKey, KeyReuse, Record, RecordedResponse};
use assay_platform::runtime::{new_id, now, timeout};

use super::import_queue::{ImportQueue, QueueFull};
use super::resolve_agents::AgentDirectory;
use crate::domain::{CompressError, Import, ImportOutcome, UnresolvedAuthors, references, resolve_authors};

const ACCEPTED: u16 = 202;

/// A request to accept a conversation.
pub struct AcceptConversation {
    pub organization_id: OrganizationId,
    pub conversation: Conversation,
    /// The idempotency key and the fingerprint of the request body.
    pub idempotency: Option<(IdempotencyKey, Fingerprint)>,
}

/// A conversation was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// An AI author refers to no registered agent, or to two different ones.
    #[error("an AI author cannot be resolved")]
    Authors(UnresolvedAuthors),
    /// A conversation with this identity was imported before, as this ticket.
    #[error("the conversation was imported as ticket {0}")]
    Duplicate(TicketId),
    /// The idempotency key was used for a request with another body.
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    /// agent-registry is unavailable.
    #[error(transparent)]
    Registry(#[from] ClientError),
    /// The outbox backlog, or the organization's share of it, has reached its limit.
    #[error(transparent)]
    OutboxFull(#[from] BacklogFull),
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// The deadline passed. The import may still be committed.
    #[error("the import was not written within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// The process is shutting down.
    #[error("the writer of imports has stopped")]
    Stopping,
    #[error("the receipt cannot be written as JSON: {0}")]
    Receipt(#[from] serde_json::Error),
    #[error(transparent)]
    Compress(#[from] CompressError),
    #[error(transparent)]
    Event(#[from] EncodeError),
    #[error(transparent)]
    Database(Arc<DatabaseError>),
}

/// The use case and its dependencies.
pub struct Acceptance {
    pub agents: AgentDirectory,
    pub queue: ImportQueue,
    pub backlog: Backlog,
    /// Maximum time until an import is committed.
    pub deadline: Duration,
}

impl Acceptance {
    /// Accepts a conversation and returns its receipt once it is committed. A replay of the request with its idempotency
    /// key returns the recorded response, byte for byte.
    ///
    /// # Errors
    /// [`AcceptError`]; nothing was written, except possibly after [`AcceptError::TooSlow`].
    pub async fn accept(&self, request: AcceptConversation) -> Result<RecordedResponse, AcceptError> {
        self.backlog.check_organization(request.organization_id)?;
        let (import, response) = self.prepare(request).await?;
        let result = self.queue.push(import)?;
        let outcome = match timeout(self.deadline, result).await {
            Some(Ok(result)) => result.map_err(AcceptError::Database)?,
            Some(Err(_)) => return Err(AcceptError::Stopping),
            None => return Err(AcceptError::TooSlow(self.deadline)),
        };
        match outcome {
            ImportOutcome::Accepted => Ok(response),
            ImportOutcome::Duplicate(ticket_id) => Err(AcceptError::Duplicate(ticket_id)),
            ImportOutcome::KeyReused(KeyReuse::Replay(first_response)) => Ok(first_response),
            ImportOutcome::KeyReused(KeyReuse::Conflict) => Err(AcceptError::IdempotencyConflict),
        }
    }

    async fn prepare(&self, request: AcceptConversation) -> Result<(Import, RecordedResponse), AcceptError> {
        let AcceptConversation { organization_id, mut conversation, idempotency } = request;
        let known = self.agents.find(organization_id, references(&conversation)).await?;
        let agents = resolve_authors(&mut conversation, &known).map_err(AcceptError::Authors)?;

        let (ticket_id, accepted_at): (TicketId, _) = (new_id(), now());
        let response = accepted_response(ticket_id, &conversation)?;
        let accepted = ConversationAccepted { organization_id, ticket_id, accepted_at };
        let event = OutgoingEvent::new(new_id(), accepted_at, &accepted)?;
        let mut import = Import::new(ticket_id, organization_id, conversation, &agents, event, accepted_at)?;
        import.record = Record::of(organization_id, idempotency, &response);
        Ok((import, response))
    }
}

fn accepted_response(
    id: TicketId,
    conversation: &Conversation,
) -> Result<RecordedResponse, serde_json::Error> {
    let receipt = ImportReceipt {
        id,
        external_ticket_id: conversation.ticket_id.clone(),
        source: conversation.source.clone(),
        status: ReceiptStatus::Accepted,
    };
    Ok(RecordedResponse {
        status: ACCEPTED,
        location: Some(format!("/v1/tickets/{id}")),
        body: serde_json::to_string(&receipt)?,
    })
}
