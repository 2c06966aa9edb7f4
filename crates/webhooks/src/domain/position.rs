//! Positions in lists, and the signed cursors that carry them.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::auth::SigningKeys;
use uuid::Uuid;

const PURPOSE: &str = "cursor of webhooks";
/// Organization, endpoint, creation time, id.
const LENGTH: usize = 16 + 16 + 8 + 16;

/// The last item of a page (key-set pagination). Items created meanwhile sort before the first page, so that no item is
/// skipped or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub created_at: Timestamp,
    /// Breaks ties between items with the same creation time.
    pub id: Uuid,
}

/// The list that a cursor belongs to: the endpoints of an organization, or the messages of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorScope {
    pub organization_id: OrganizationId,
    /// Nil for the list of endpoints.
    pub endpoint: Uuid,
}

/// Malformed, or signed for another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor was not made by this service for this list")]
pub struct InvalidCursor;

impl Position {
    /// Encodes the position as an opaque, signed cursor.
    pub fn seal(&self, keys: &SigningKeys, scope: CursorScope) -> String {
        let mut content = Vec::with_capacity(LENGTH);
        content.extend_from_slice(scope.organization_id.as_uuid().as_bytes());
        content.extend_from_slice(scope.endpoint.as_bytes());
        content.extend_from_slice(&self.created_at.as_millis().to_be_bytes());
        content.extend_from_slice(self.id.as_bytes());
        keys.seal(PURPOSE, &content)
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// For any text that [`Self::seal`] did not make for this list.
    pub fn open(keys: &SigningKeys, scope: CursorScope, cursor: &str) -> Result<Self, InvalidCursor> {
        let content = keys.open(PURPOSE, cursor).map_err(|_| InvalidCursor)?;
        let content: [u8; LENGTH] = content.try_into().map_err(|_| InvalidCursor)?;
        let (scope_bytes, rest) = content.split_at(32);
        let (moment, id) = rest.split_at(8);
        let expected = [scope.organization_id.as_uuid().into_bytes(), scope.endpoint.into_bytes()].concat();
        if scope_bytes != expected {
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
    fn cursor_is_valid_for_its_own_list_only() {
        let keys = SigningKeys::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap();
        let scope = CursorScope { organization_id: new_id(), endpoint: new_id() };
        let position = Position { created_at: Timestamp::saturating_from_millis(17), id: new_id() };
        let cursor = position.seal(&keys, scope);
        assert_eq!(Position::open(&keys, scope, &cursor), Ok(position));
        for other in
            [CursorScope { organization_id: new_id(), ..scope }, CursorScope { endpoint: new_id(), ..scope }]
        {
            assert_eq!(Position::open(&keys, other, &cursor), Err(InvalidCursor));
        }
        for text in ["", "x", &cursor[1..]] {
            assert_eq!(Position::open(&keys, scope, text), Err(InvalidCursor), "{text}");
        }
    }
}
