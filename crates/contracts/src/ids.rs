//! Identifiers. Each kind is its own type, so that a ticket id can never be passed where an export id belongs.
//!
//! All ids are UUIDs; the ones this service makes are version 7 (RFC 9562, section 5.7): ordered by creation
//! time, which keeps indexes dense. They are made in `platform::runtime`, never here: this crate is pure.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The UUID itself, for storage.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(value: Uuid) -> Self {
                Self(value)
            }
        }

        impl From<$name> for Uuid {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts only the canonical form (36 characters, lower case), so that one record has one address.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let uuid = Uuid::try_parse(text).map_err(|_| InvalidId)?;
                if uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text {
                    Ok(Self(uuid))
                } else {
                    Err(InvalidId)
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

/// A text that is not a canonical UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical UUID")]
pub struct InvalidId;

uuid_id!(
    /// A tenant.
    OrganizationId
);
uuid_id!(
    /// An API key's record (not the secret).
    ApiKeyId
);
uuid_id!(
    /// An accepted import: the service ticket id of the receipt.
    TicketId
);
uuid_id!(
    /// A registered AI agent.
    AgentId
);
uuid_id!(
    /// One evaluation of one ticket.
    EvaluationId
);
uuid_id!(
    /// An export job and its file.
    ExportId
);
uuid_id!(
    /// One event on the bus; the key of the consumers' inboxes.
    EventId
);
