//! A place in a list, and the cursor that carries it to the client and back.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::auth::SigningKeys;
use uuid::Uuid;

const PURPOSE: &str = "cursor of webhooks";
/// Organization, list, moment, id.
const LENGTH: usize = 16 + 16 + 8 + 16;

/// The last item of a page: the next page holds what was made before it. Key-set pagination: whatever is made meanwhile comes
/// before the first page, so that nothing is skipped or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// When the item was made.
    pub created_at: Timestamp,
    /// Its id, which decides between items of the same moment.
    pub id: Uuid,
}

/// Which list a cursor belongs to: the endpoints of an organization, or the messages to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The endpoint whose messages are listed; nil for the list of endpoints.
    pub endpoint: Uuid,
}

/// A text that is no cursor of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor was not made by this service for this list")]
pub struct InvalidCursor;

impl Position {
    /// The position as an opaque text that nobody else can make.
    pub fn seal(&self, keys: &SigningKeys, list: List) -> String {
        let mut content = Vec::with_capacity(LENGTH);
        content.extend_from_slice(list.organization_id.as_uuid().as_bytes());
        content.extend_from_slice(list.endpoint.as_bytes());
        content.extend_from_slice(&self.created_at.as_millis().to_be_bytes());
        content.extend_from_slice(self.id.as_bytes());
        keys.seal(PURPOSE, &content)
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// For any text that [`Self::seal`] did not make for this list.
    pub fn open(keys: &SigningKeys, list: List, cursor: &str) -> Result<Self, InvalidCursor> {
        let content = keys.open(PURPOSE, cursor).map_err(|_| InvalidCursor)?;
        let content: [u8; LENGTH] = content.try_into().map_err(|_| InvalidCursor)?;
        let (of_list, rest) = content.split_at(32);
        let (moment, id) = rest.split_at(8);
        let expected = [list.organization_id.as_uuid().into_bytes(), list.endpoint.into_bytes()].concat();
        if of_list != expected {
            return Err(InvalidCursor);
        }
        let millis = i64::from_be_bytes(moment.try_into().map_err(|_| InvalidCursor)?);
        Ok(Self {
            created_at: Timestamp::from_millis(millis).map_err(|_| InvalidCursor)?,
            id: Uuid::from_slice(id).map_err(|_| InvalidCursor)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_position_in_its_list_only() {
        let keys = SigningKeys::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap();
        let list = List { organization_id: new_id(), endpoint: new_id() };
        let position = Position { created_at: Timestamp::saturating_from_millis(17), id: new_id() };
        let cursor = position.seal(&keys, list);
        assert_eq!(Position::open(&keys, list, &cursor), Ok(position));
        for other in [List { organization_id: new_id(), ..list }, List { endpoint: new_id(), ..list }] {
            assert_eq!(Position::open(&keys, other, &cursor), Err(InvalidCursor));
        }
        for text in ["", "x", &cursor[1..]] {
            assert_eq!(Position::open(&keys, list, text), Err(InvalidCursor), "{text}");
        }
    }
}
