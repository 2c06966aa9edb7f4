//! The authors of a transcript: customer, teammate, AI agent, system, or several at once.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::named_enum::named_enum;

/// Who wrote an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Author {
    /// External customer or end user.
    Contact {
        /// Stable id in the source system.
        external_id: String,
        /// Display name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Human teammate, support agent, internal staff.
    Teammate {
        /// Stable id in the source system.
        external_id: String,
        /// Display name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// AI agent whose messages are scored. At least one of the ids is present; both once it is resolved.
    Ai {
        /// Our id of the agent, as the caller wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The external id used when the agent was created.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        /// Display name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Event, automation, workflow or notification of the source system.
    System {
        /// Stable id in the source system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_id: Option<String>,
        /// Display name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Several unresolved actors that cannot be split. A `name` in the input only labels the import and is dropped.
    Mixed,
}

impl Author {
    /// The variant.
    pub const fn author_type(&self) -> AuthorType {
        match self {
            Self::Contact { .. } => AuthorType::Contact,
            Self::Teammate { .. } => AuthorType::Teammate,
            Self::Ai { .. } => AuthorType::Ai,
            Self::System { .. } => AuthorType::System,
            Self::Mixed => AuthorType::Mixed,
        }
    }

    /// The author's `external_id`: the id in the source system, or for an AI agent the one it was created with.
    pub fn external_id(&self) -> Option<&str> {
        match self {
            Self::Contact { external_id, .. } | Self::Teammate { external_id, .. } => Some(external_id),
            Self::Ai { external_id, .. } | Self::System { external_id, .. } => external_id.as_deref(),
            Self::Mixed => None,
        }
    }

    /// The display name that came with the item.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Contact { name, .. }
            | Self::Teammate { name, .. }
            | Self::Ai { name, .. }
            | Self::System { name, .. } => name.as_deref(),
            Self::Mixed => None,
        }
    }
}

named_enum!(
    /// The five author variants.
    AuthorType {
        /// Customer.
        Contact = "contact",
        /// Human teammate.
        Teammate = "teammate",
        /// AI agent.
        Ai = "ai",
        /// System event.
        System = "system",
        /// Several unresolved actors.
        Mixed = "mixed",
    }
);
