//! One import: everything that its transaction writes.

use assay_contracts::conversation::{Conversation, IdentityHash};
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::idempotency::{Earlier, Record};

use super::participant::{Participant, participants};

/// A checked conversation, ready to be written.
pub struct Import {
    /// Its ticket.
    pub ticket_id: TicketId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What duplicates are found by.
    pub identity: IdentityHash,
    /// The conversation; AI authors carry both ids.
    pub conversation: Conversation,
    /// Its messages as JSON.
    pub messages_json: String,
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
    /// When it cannot be written as JSON.
    pub fn new(
        ticket_id: TicketId,
        organization_id: OrganizationId,
        conversation: Conversation,
        agents: &[AgentFacts],
        event: OutgoingEvent,
        accepted_at: Timestamp,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            ticket_id,
            organization_id,
            identity: conversation.identity(),
            messages_json: serde_json::to_string(&conversation.messages)?,
            agents_json: serde_json::to_string(agents)?,
            participants: participants(organization_id, &conversation),
            conversation,
            accepted_at,
            event,
            record: None,
        })
    }
}
