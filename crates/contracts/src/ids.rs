//! Identifiers. Each kind is its own type, so that a ticket id can never be passed where an export id belongs.
//!
//! All ids are UUIDs; those that this service generates are version 7 (RFC 9562, section 5.7): ordered by creation
//! time, which keeps indexes dense. They are generated in `platform::runtime`: this crate is pure.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Timestamp;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The UUID, for storage.
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

            /// Accepts only the canonical form (36 characters, lower case), so that a record has one URL.
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
    )+};
}

impl TicketId {
    /// The smallest id of a ticket created at `moment` or later. Only this service generates ticket ids, so comparing ids
    /// compares ages.
    pub fn min_at(moment: Timestamp) -> Self {
        // The first 48 bits of a UUID of version 7 are its milliseconds.
        Self(Uuid::from_u128(u128::from(moment.as_millis().unsigned_abs()) << 80))
    }
}

impl EventId {
    /// Time of creation to the millisecond; `None` unless it is a UUID version 7.
    pub fn created_at(&self) -> Option<Timestamp> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        let millis = i64::try_from(seconds).ok()?.checked_mul(1_000)? + i64::from(nanoseconds / 1_000_000);
        Timestamp::from_millis(millis).ok()
    }
}

/// The text is not a canonical UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical UUID")]
pub struct InvalidId;

uuid_ids! {
    /// An organization, the tenant.
    OrganizationId;
    /// An API key's record (not the secret).
    ApiKeyId;
    /// A session of the console.
    SessionId;
    /// An accepted import: the service ticket id of the receipt.
    TicketId;
    /// A refused import.
    RefusalId;
    /// A registered AI agent.
    AgentId;
    /// One evaluation of one ticket.
    EvaluationId;
    /// An export job and its file.
    ExportId;
    /// A webhook: an endpoint that receives events.
    WebhookId;
    /// One message to one webhook.
    WebhookDeliveryId;
    /// One event on the bus; the key of the consumers' inboxes.
    EventId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn min_id_of_a_moment_separates_earlier_and_later_ids() {
        let moment = Timestamp::saturating_from_millis(1_763_600_000_000);
        let id = |millis: u64, rest: u8| {
            TicketId(uuid::Builder::from_unix_timestamp_millis(millis, &[rest; 10]).into_uuid())
        };
        let first = TicketId::min_at(moment);
        assert!(id(1_763_599_999_999, 255) < first && first <= id(1_763_600_000_000, 0));
    }

    #[test]
    fn event_id_has_its_creation_time() {
        let id = uuid::Builder::from_unix_timestamp_millis(1_763_600_000_123, &[7; 10]).into_uuid();
        assert_eq!(EventId(id).created_at().map(Timestamp::as_millis), Some(1_763_600_000_123));
        assert_eq!(EventId(Uuid::from_u128(1)).created_at(), None);
    }
}
