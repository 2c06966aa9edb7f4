//! OpenAPI schema of an import request. [`super::Conversation::parse`] is the parser; tests of the gateway compare the two.

#![allow(dead_code, reason = "documentation only: these types are never built")]

use utoipa::ToSchema;

use super::{AiTool, MessageKind};

/// Conversation import request.
#[derive(ToSchema)]
pub struct ImportRequest {
    /// 1 to 50 items in chronological order.
    #[schema(min_items = 1, max_items = 50)]
    messages: Vec<ImportMessage>,
    /// Stable ticket or conversation id from the source system.
    #[schema(min_length = 1, max_length = 1024, example = "T-1001")]
    ticket_id: String,
    /// Namespaces the messages' external ids.
    #[schema(min_length = 1, max_length = 1024, default = "custom")]
    source: Option<String>,
    /// Stable account id within the source system.
    #[schema(min_length = 1, max_length = 1024)]
    source_account_id: Option<String>,
    /// Ticket or conversation subject.
    #[schema(example = "Where is my refund?")]
    subject: Option<String>,
}

/// One item of a transcript.
#[derive(ToSchema)]
pub struct ImportMessage {
    /// Who wrote it.
    author: ImportAuthor,
    /// Plain text body.
    #[schema(min_length = 1, example = "Where is my refund?")]
    content: String,
    /// Stable message or comment id from the source system; unique per kind within the conversation.
    #[schema(min_length = 1, max_length = 1024, example = "m-1")]
    external_id: String,
    /// Unix epoch in milliseconds of creation in the source system.
    #[schema(minimum = 0, maximum = 253_402_300_799_999_i64, example = 1_763_600_000_000_i64)]
    timestamp: i64,
    /// `message` for customer-facing items, `comment` for internal notes.
    #[schema(default = "message")]
    kind: Option<MessageKind>,
    /// Label of the AI tool or provider; ignored on messages of other authors.
    ai_tool: Option<AiTool>,
}

/// Author of an item.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImportAuthor {
    /// External customer or end user.
    Contact {
        /// Stable id in the source system.
        #[schema(min_length = 1, max_length = 1024, example = "customer-7")]
        external_id: String,
        /// Display name.
        #[schema(min_length = 1, max_length = 1024)]
        name: Option<String>,
    },
    /// Human teammate, support agent, internal staff.
    Teammate {
        /// Stable id in the source system.
        #[schema(min_length = 1, max_length = 1024, example = "teammate-2")]
        external_id: String,
        /// Display name.
        #[schema(min_length = 1, max_length = 1024)]
        name: Option<String>,
    },
    /// AI agent whose messages are scored; give `id` or `external_id`.
    Ai {
        /// Service agent id.
        #[schema(min_length = 1, max_length = 1024)]
        id: Option<String>,
        /// The external id used when the agent was created.
        #[schema(min_length = 1, max_length = 1024, example = "support-bot")]
        external_id: Option<String>,
        /// Display name.
        #[schema(min_length = 1, max_length = 1024)]
        name: Option<String>,
    },
    /// Event, automation, workflow or notification of the source system.
    System {
        /// Stable id in the source system.
        #[schema(min_length = 1, max_length = 1024)]
        external_id: Option<String>,
        /// Display name.
        #[schema(min_length = 1, max_length = 1024)]
        name: Option<String>,
    },
    /// Several unresolved actors that cannot be split.
    Mixed {
        /// Import label; not stored.
        #[schema(min_length = 1, max_length = 1024)]
        name: Option<String>,
    },
}
