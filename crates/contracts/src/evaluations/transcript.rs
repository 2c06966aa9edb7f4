//! The transcript of a ticket: its items as they were imported, and its attributes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::AgentFacts;
use crate::conversation::{AiTool, AuthorType, Message, MessageKind};
use crate::ids::TicketId;
use crate::time::Timestamp;

/// The transcript of a ticket. `M` is raw JSON where the messages are passed on without parsing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketTranscript<M = Vec<Message>> {
    /// Service ticket id.
    pub ticket_id: TicketId,
    /// The ticket id of the source system.
    pub external_id: String,
    /// Source of the import.
    pub source: String,
    /// Account within the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_account_id: Option<String>,
    /// Subject; empty when the import had none.
    pub subject: String,
    /// Timestamp of the first message.
    pub started_at: Timestamp,
    /// Timestamp of the last message.
    pub ended_at: Timestamp,
    /// When the import was accepted.
    pub imported_at: Timestamp,
    /// The registered AI agents that took part.
    pub agents: Vec<AgentFacts>,
    /// The items in order.
    pub messages: M,
}

/// The transcript of a ticket: its items as they were imported.
// The OpenAPI schema of `TicketTranscript`.
#[derive(ToSchema)]
#[schema(as = TicketTranscript)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct TranscriptDocument {
    /// Service ticket id.
    #[schema(example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    ticket_id: String,
    /// The ticket id of the source system.
    external_id: String,
    /// Source of the import.
    source: String,
    /// Account within the source; absent when the import named none.
    #[schema(nullable = false)]
    source_account_id: Option<String>,
    /// Subject, its first 1,000 characters and `…` when it is longer; empty when the import had none.
    subject: String,
    /// Timestamp of the first message, epoch milliseconds.
    started_at: i64,
    /// Timestamp of the last message, epoch milliseconds.
    ended_at: i64,
    /// When the import was accepted, epoch milliseconds.
    imported_at: i64,
    /// The registered AI agents that took part, in order of first appearance.
    agents: Vec<AgentFacts>,
    /// The items in order, 1 to 50.
    messages: Vec<TranscriptMessage>,
}

/// One item of a transcript.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct TranscriptMessage {
    /// Who wrote it.
    author: TranscriptAuthor,
    /// Plain text, as it was imported.
    content: String,
    /// Message id in the source system: the `message_external_id` of an evaluation's evidence.
    external_id: String,
    /// When it was written, epoch milliseconds.
    timestamp: i64,
    /// Customer-facing item or internal note.
    kind: MessageKind,
    /// Label of the AI tool, on an AI agent's message.
    #[schema(nullable = false)]
    ai_tool: Option<AiTool>,
}

/// The author of an item.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct TranscriptAuthor {
    /// The kind of author.
    r#type: AuthorType,
    /// Service id of an AI agent.
    #[schema(nullable = false)]
    id: Option<String>,
    /// Id in the source system.
    #[schema(nullable = false)]
    external_id: Option<String>,
    /// Display name that came with the item.
    #[schema(nullable = false)]
    name: Option<String>,
}
