//! Labels of AI tools: the specification names `custom` and leaves ten provider labels to the service.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! ai_tools {
    ($($variant:ident = $label:tt,)*) => {
        /// Label of the AI tool or provider of a message. A closed list, exact case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[allow(missing_docs, reason = "the names of products")]
        pub enum AiTool {
            $(#[serde(rename = $label)] $variant,)*
        }

        impl AiTool {
            /// Every label, in the order of documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The label on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }
        }
    };
}

ai_tools! {
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

impl AiTool {
    /// The tool with exactly this label.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.as_str() == label)
    }
}
