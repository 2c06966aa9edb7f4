//! A conversation as it is submitted: the body of `POST /v1/assess`.
//!
//! [`Conversation::parse`] checks every rule about its shape. Deserialization checks none: it is for conversations that were
//! parsed before.

mod ai_tool;
mod author;
mod identity;
mod parse;
mod schema;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::ai_tool::AiTool;
pub use self::author::{Author, AuthorType};
pub use self::identity::{IdentityHash, Namespace};
pub use self::schema::{ImportAuthor, ImportMessage, ImportRequest};

use crate::named_enum::named_enum;
use crate::time::Timestamp;

/// Maximum number of messages of an import.
pub const MAX_MESSAGES: usize = 50;

/// The source when the request names none.
pub const DEFAULT_SOURCE: &str = "custom";

/// One support conversation. `M` is raw JSON where the messages are passed on without parsing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation<M = Vec<Message>> {
    /// Stable ticket or conversation id from the source system.
    pub ticket_id: String,
    /// Name of the source system, `custom` when the request names none; namespace of the ticket id when there is no account.
    pub source: String,
    /// Stable account id within the source system.
    pub source_account_id: Option<String>,
    /// Ticket subject.
    pub subject: Option<String>,
    /// 1 to [`MAX_MESSAGES`] items, timestamps non-decreasing.
    pub messages: M,
}

/// One item of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who wrote it.
    pub author: Author,
    /// Plain text, never empty.
    pub content: String,
    /// Stable message or comment id from the source system; unique per kind within the conversation.
    pub external_id: String,
    /// When it was written in the source system.
    pub timestamp: Timestamp,
    /// Customer-facing item or internal note.
    pub kind: MessageKind,
    /// Label of the AI tool; only on messages of AI agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ai_tool: Option<AiTool>,
}

named_enum!(
    /// Customer-facing item or internal note.
    MessageKind {
        /// Customer-facing transcript item.
        Message = "message",
        /// Internal note or helpdesk comment; the customer never saw it.
        Comment = "comment",
    }
);

impl Conversation {
    /// Timestamp of the first message: the conversation's date in exports.
    pub fn started_at(&self) -> Timestamp {
        self.messages.first().map_or(Timestamp::MIN, |message| message.timestamp)
    }

    /// Timestamp of the last message.
    pub fn ended_at(&self) -> Timestamp {
        self.messages.last().map_or(Timestamp::MIN, |message| message.timestamp)
    }

    /// The identity namespace: the account when it is given, else the source.
    pub fn namespace(&self) -> Namespace<'_> {
        match &self.source_account_id {
            Some(account) => Namespace::Account(account),
            None => Namespace::Source(&self.source),
        }
    }

    /// The hash of the identity, which detects duplicates.
    pub fn identity(&self) -> IdentityHash {
        IdentityHash::of(self.namespace(), &self.ticket_id)
    }
}
