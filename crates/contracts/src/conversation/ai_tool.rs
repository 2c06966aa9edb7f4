//! Labels of AI tools: ten products, and `custom` for any other.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::named_enum::named_enum;

named_enum!(
    /// Label of the AI tool or provider of a message. A closed list, exact case.
    #[allow(missing_docs, reason = "the names of products")]
    AiTool {
        Custom = "custom",
        Intercom = "intercom",
        Zendesk = "zendesk",
        Salesforce = "salesforce",
        Hubspot = "hubspot",
        Freshdesk = "freshdesk",
        Gorgias = "gorgias",
        Front = "front",
        HelpScout = "helpScout",
        Ada = "ada",
        Decagon = "decagon",
    }
);
