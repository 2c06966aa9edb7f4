//! Accepts a conversation: specification, "POST /v1/assess". The answer means that it is committed.

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
use assay_platform::db::idempotency::{Earlier, Fingerprint, IdempotencyKey, Record, StoredAnswer};
use assay_platform::runtime::{new_id, now, within};

use super::import_queue::{ImportQueue, QueueFull};
use super::resolve_agents::AgentDirectory;
use crate::domain::{Import, ImportOutcome, PackError, UnresolvedAuthors, references, resolve_authors};

const ACCEPTED: u16 = 202;

/// A request to accept a conversation.
pub struct AcceptConversation {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The conversation as it was submitted.
    pub conversation: Conversation,
    /// The request's idempotency key and the fingerprint of its body.
    pub idempotency: Option<(IdempotencyKey, Fingerprint)>,
}

/// Why a conversation was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// An AI author is no agent that is known.
    #[error("an AI author cannot be resolved")]
    Authors(UnresolvedAuthors),
    /// The identity was imported before, as this ticket.
    #[error("the conversation was imported as ticket {0}")]
    Duplicate(TicketId),
    /// The idempotency key belongs to another request.
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    /// agent-registry cannot be asked.
    #[error(transparent)]
    Registry(#[from] ClientError),
    /// Too much waits for the bus: what is accepted now would wait, too.
    #[error(transparent)]
    OutboxFull(#[from] BacklogFull),
    /// Too many imports are waiting.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// It was not committed in time, though it may still be.
    #[error("the import was not written within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// The writer is gone: the process is stopping.
    #[error("the writer of imports has stopped")]
    Stopping,
    /// The receipt cannot be written as JSON.
    #[error("the receipt cannot be written as JSON: {0}")]
    Receipt(#[from] serde_json::Error),
    /// The messages cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The event cannot be encoded.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// The database failed.
    #[error(transparent)]
    Database(Arc<DatabaseError>),
}

/// Accepts conversations.
pub struct Acceptance {
    /// Who AI authors are.
    pub agents: AgentDirectory,
    /// Where imports wait for a writer.
    pub queue: ImportQueue,
    /// What waits for the bus.
    pub backlog: Backlog,
    /// How long an import may take to be committed.
    pub deadline: Duration,
}

impl Acceptance {
    /// Accepts a conversation and answers with its receipt, once it is committed. The same request with the same
    /// idempotency key gets the first answer again, byte for byte.
    ///
    /// # Errors
    /// [`AcceptError`]; nothing is written then, but for [`AcceptError::TooSlow`], which cannot know.
    pub async fn accept(&self, request: AcceptConversation) -> Result<StoredAnswer, AcceptError> {
        self.backlog.check()?;
        let (import, answer) = self.prepare(request).await?;
        let written = self.queue.push(import)?;
        let outcome = match within(self.deadline, written).await {
            Some(Ok(written)) => written.map_err(AcceptError::Database)?,
            Some(Err(_)) => return Err(AcceptError::Stopping),
            None => return Err(AcceptError::TooSlow(self.deadline)),
        };
        match outcome {
            ImportOutcome::Accepted => Ok(answer),
            ImportOutcome::Duplicate(ticket_id) => Err(AcceptError::Duplicate(ticket_id)),
            ImportOutcome::Earlier(Earlier::SameRequest(first_answer)) => Ok(first_answer),
            ImportOutcome::Earlier(Earlier::OtherRequest) => Err(AcceptError::IdempotencyConflict),
        }
    }

    async fn prepare(&self, request: AcceptConversation) -> Result<(Import, StoredAnswer), AcceptError> {
        let AcceptConversation { organization_id, mut conversation, idempotency } = request;
        let known = self.agents.find(organization_id, references(&conversation)).await?;
        let agents = resolve_authors(&mut conversation, &known).map_err(AcceptError::Authors)?;

        let (ticket_id, accepted_at): (TicketId, _) = (new_id(), now());
        let answer = receipt(ticket_id, &conversation)?;
        let accepted = ConversationAccepted { organization_id, ticket_id, accepted_at };
        let event = OutgoingEvent::new(new_id(), accepted_at, &accepted)?;
        let mut import = Import::new(ticket_id, organization_id, conversation, &agents, event, accepted_at)?;
        import.record = idempotency.map(|(key, fingerprint)| Record {
            organization_id,
            key,
            fingerprint,
            answer: answer.clone(),
        });
        Ok((import, answer))
    }
}

fn receipt(id: TicketId, conversation: &Conversation) -> Result<StoredAnswer, serde_json::Error> {
    let receipt = ImportReceipt {
        id,
        external_ticket_id: conversation.ticket_id.clone(),
        source: conversation.source.clone(),
        status: ReceiptStatus::Accepted,
    };
    Ok(StoredAnswer {
        status: ACCEPTED,
        location: Some(format!("/v1/tickets/{id}")),
        body: serde_json::to_string(&receipt)?,
    })
}
