//! Keyset pagination of exports: the position of a page, sealed into an opaque cursor.

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::auth::SigningKeys;
use uuid::Uuid;

const PURPOSE: &str = "cursor of exports";
/// Organization, moment, id.
const LENGTH: usize = 16 + 8 + 16;

/// The last export of a page; the next page contains older exports. Exports created meanwhile sort before the first page, so
/// that none is skipped or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub created_at: Timestamp,
    /// Tie-breaker of exports with the same timestamp.
    pub id: ExportId,
}

/// Not a cursor of this organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor was not made by this service for this organization")]
pub struct InvalidCursor;

impl Position {
    /// Encodes the position as an authenticated, opaque cursor.
    pub fn seal(&self, keys: &SigningKeys, organization_id: OrganizationId) -> String {
        let mut content = Vec::with_capacity(LENGTH);
        content.extend_from_slice(organization_id.as_uuid().as_bytes());
        content.extend_from_slice(&self.created_at.as_millis().to_be_bytes());
        content.extend_from_slice(self.id.as_uuid().as_bytes());
        keys.seal(PURPOSE, &content)
    }

    /// Decodes a cursor.
    ///
    /// # Errors
    /// For any text that [`Self::seal`] did not make for this organization.
    pub fn open(
        keys: &SigningKeys,
        organization_id: OrganizationId,
        cursor: &str,
    ) -> Result<Self, InvalidCursor> {
        let content = keys.open(PURPOSE, cursor).map_err(|_| InvalidCursor)?;
        let content: [u8; LENGTH] = content.try_into().map_err(|_| InvalidCursor)?;
        let (organization, rest) = content.split_at(16);
        let (moment, id) = rest.split_at(8);
        if organization != organization_id.as_uuid().as_bytes() {
            return Err(InvalidCursor);
        }
        let millis = i64::from_be_bytes(moment.try_into().map_err(|_| InvalidCursor)?);
        Ok(Self {
            created_at: Timestamp::from_millis(millis).map_err(|_| InvalidCursor)?,
            id: ExportId::from(Uuid::from_slice(id).map_err(|_| InvalidCursor)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    fn keys() -> SigningKeys {
        SigningKeys::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap()
    }

    #[test]
    fn cursor_opens_only_in_its_organization() {
        let (organization, other): (OrganizationId, OrganizationId) = (new_id(), new_id());
        let position = Position { created_at: Timestamp::saturating_from_millis(17), id: new_id() };
        let cursor = position.seal(&keys(), organization);
        assert_eq!(Position::open(&keys(), organization, &cursor), Ok(position));
        assert_eq!(Position::open(&keys(), other, &cursor), Err(InvalidCursor));
        let foreign = keys().seal("another purpose", b"content");
        for text in ["", "x", &cursor[1..], &foreign] {
            assert_eq!(Position::open(&keys(), organization, text), Err(InvalidCursor), "{text}");
        }
    }
}
