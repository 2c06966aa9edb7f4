//! An import: everything that is written for one conversation.

use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::{Conversation, IdentityHash};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::idempotency::{KeyReuse, Record};

use super::compressed_messages::{CompressError, CompressedMessages};
use super::participant::{Participant, participants};

/// A validated conversation, ready to be written; already compressed, because many may be queued.
pub struct Import {
    pub ticket_id: TicketId,
    pub organization_id: OrganizationId,
    /// Identifies duplicates.
    pub identity: IdentityHash,
    /// Stable ticket or conversation id from the source system.
    pub external_id: String,
    /// Name of the source system.
    pub source: String,
    /// Stable account id within the source system.
    pub source_account_id: Option<String>,
    /// Ticket subject.
    pub subject: Option<String>,
    /// Timestamp of the first message.
    pub started_at: Timestamp,
    /// Timestamp of the last message.
    pub ended_at: Timestamp,
    /// The messages; AI authors carry both ids.
    pub messages: CompressedMessages,
    /// The resolved agents, as JSON.
    pub agents_json: String,
    /// The display names in the conversation.
    pub participants: Vec<Participant>,
    pub accepted_at: Timestamp,
    /// Its `conversation.accepted` event.
    pub event: OutgoingEvent,
    /// The idempotency record, when the request has a key.
    pub record: Option<Record>,
}

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// Committed.
    Accepted,
    /// Imported before, as this ticket; nothing was written.
    Duplicate(TicketId),
    /// The idempotency key was used before; nothing was written.
    KeyReused(KeyReuse),
}

impl Import {
    pub fn new(
        ticket_id: TicketId,
        organization_id: OrganizationId,
        conversation: Conversation,
        agents: &[AgentFacts],
        event: OutgoingEvent,
        accepted_at: Timestamp,
    ) -> Result<Self, CompressError> {
        Ok(Self {
            ticket_id,
            organization_id,
            identity: conversation.identity(),
            started_at: conversation.started_at(),
            ended_at: conversation.ended_at(),
            messages: CompressedMessages::compress(&conversation.messages)?,
            agents_json: serde_json::to_string(agents)?,
            participants: participants(organization_id, &conversation),
            external_id: conversation.ticket_id,
            source: conversation.source,
            source_account_id: conversation.source_account_id,
            subject: conversation.subject,
            accepted_at,
            event,
            record: None,
        })
    }

    /// Bytes of its compressed messages and of the texts that may be large: subject, agents, display names.
    pub fn bytes(&self) -> usize {
        let subject = self.subject.as_ref().map_or(0, String::len);
        let names: usize = self.participants.iter().map(Participant::bytes).sum();
        self.messages.as_bytes().len() + self.agents_json.len() + subject + names
    }
}
