//! One import: everything that its transaction writes.

use assay_contracts::conversation::{Conversation, IdentityHash};
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::idempotency::{Earlier, Record};

use super::packed_messages::{PackError, PackedMessages};
use super::participant::{Participant, participants};

/// A checked conversation, ready to be written: as small as it is going to be stored, because many may wait.
pub struct Import {
    /// Its ticket.
    pub ticket_id: TicketId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What duplicates are found by.
    pub identity: IdentityHash,
    /// Stable ticket or conversation id from the source system.
    pub external_id: String,
    /// Namespace of the messages' external ids.
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
    pub messages: PackedMessages,
    /// The agents that took part, as JSON.
    pub agents_json: String,
    /// The names that it brings.
    pub participants: Vec<Participant>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The event that tells of it.
    pub event: OutgoingEvent,
    /// The request's idempotency record, when it has a key.
    pub record: Option<Record>,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is committed.
    Accepted,
    /// Its identity was imported before, as this ticket; nothing was written.
    Duplicate(TicketId),
    /// Its idempotency key was used before; nothing was written.
    Earlier(Earlier),
}

impl Import {
    /// Prepares an import.
    ///
    /// # Errors
    /// When it cannot be packed.
    pub fn new(
        ticket_id: TicketId,
        organization_id: OrganizationId,
        conversation: Conversation,
        agents: &[AgentFacts],
        event: OutgoingEvent,
        accepted_at: Timestamp,
    ) -> Result<Self, PackError> {
        Ok(Self {
            ticket_id,
            organization_id,
            identity: conversation.identity(),
            started_at: conversation.started_at(),
            ended_at: conversation.ended_at(),
            messages: PackedMessages::pack(&conversation.messages)?,
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
}
