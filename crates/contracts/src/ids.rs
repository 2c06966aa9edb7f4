//! Identifiers. Each kind is its own type, so that a ticket id can never be passed where an export id belongs.
//!
//! All ids are UUIDs; the ones this service makes are version 7 (RFC 9562, section 5.7): ordered by creation
//! time, which keeps indexes dense. They are made in `platform::runtime`, never here: this crate is pure.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::time::Timestamp;

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

impl TicketId {
    /// The least id that is made at `moment` or later. Ids of tickets are made by this service alone, so that comparing
    /// with it compares ages.
    pub fn first_at(moment: Timestamp) -> Self {
        // The first 48 bits of a UUID of version 7 are its milliseconds.
        Self(Uuid::from_u128(u128::from(moment.as_millis().unsigned_abs()) << 80))
    }
}

impl EventId {
    /// When it was made, as far as it is of version 7; to the millisecond.
    pub fn made_at(&self) -> Option<Timestamp> {
        let (seconds, nanoseconds) = self.0.get_timestamp()?.to_unix();
        let millis = i64::try_from(seconds).ok()?.checked_mul(1_000)? + i64::from(nanoseconds / 1_000_000);
        Timestamp::from_millis(millis).ok()
    }
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
    /// A webhook: an endpoint that is told of events.
    WebhookId
);
uuid_id!(
    /// One message to one webhook.
    WebhookDeliveryId
);
uuid_id!(
    /// One event on the bus; the key of the consumers' inboxes.
    EventId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_of_a_moment_lies_between_its_neighbours() {
        let moment = Timestamp::saturating_from_millis(1_763_600_000_000);
        let id = |millis: u64, rest: u8| {
            TicketId(uuid::Builder::from_unix_timestamp_millis(millis, &[rest; 10]).into_uuid())
        };
        let first = TicketId::first_at(moment);
        assert!(id(1_763_599_999_999, 255) < first && first <= id(1_763_600_000_000, 0));
    }

    #[test]
    fn an_event_id_tells_when_it_was_made() {
        let id = uuid::Builder::from_unix_timestamp_millis(1_763_600_000_123, &[7; 10]).into_uuid();
        assert_eq!(EventId(id).made_at().map(Timestamp::as_millis), Some(1_763_600_000_123));
        assert_eq!(EventId(Uuid::from_u128(1)).made_at(), None);
    }
}
