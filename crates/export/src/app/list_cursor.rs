//! Cursors of lists of evaluations: the last row of a page and the number of rows, signed for one organization, filter and
//! order.

use assay_contracts::evaluations::{EvaluationFilters, Sort, Total};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::auth::KeyRing;
use assay_platform::web::cursor::InvalidCursor;
use uuid::Uuid;

use crate::store::ListPosition;

/// Content of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    /// That of the last row of the page.
    pub position: ListPosition,
    pub total: Total,
}

pub struct ListCursors<'k> {
    keys: &'k KeyRing,
    purpose: String,
}

impl<'k> ListCursors<'k> {
    pub fn new(
        keys: &'k KeyRing,
        organization: OrganizationId,
        filters: &EvaluationFilters,
        sort: Sort,
    ) -> Self {
        let purpose = format!("cursor of evaluations of {organization} by {sort}: {}", filters.to_query());
        Self { keys, purpose }
    }

    pub fn encode(&self, cursor: &ListCursor) -> String {
        let ListCursor { position, total } = cursor;
        // Two flags, three numbers of 8 bytes, and an id of 16 bytes.
        let mut content = Vec::with_capacity(42);
        content.extend([u8::from(position.value.is_some()), u8::from(total.exact)]);
        content.extend(position.value.unwrap_or_default().to_be_bytes());
        content.extend(position.started_at.as_millis().to_be_bytes());
        content.extend(total.count.to_be_bytes());
        content.extend(position.ticket_id.as_uuid().as_bytes());
        self.keys.encode_signed(&self.purpose, &content)
    }

    /// # Errors
    /// For any text that [`Self::encode`] did not make for this list.
    pub fn decode(&self, cursor: &str) -> Result<ListCursor, InvalidCursor> {
        let content = self.keys.decode_signed(&self.purpose, cursor).map_err(|_| InvalidCursor)?;
        let ([has_value, exact], rest) = content.split_first_chunk().ok_or(InvalidCursor)?;
        let (value, rest) = rest.split_first_chunk().ok_or(InvalidCursor)?;
        let (started_at, rest) = rest.split_first_chunk().ok_or(InvalidCursor)?;
        let (count, id) = rest.split_first_chunk().ok_or(InvalidCursor)?;
        Ok(ListCursor {
            position: ListPosition {
                value: (*has_value == 1).then_some(i64::from_be_bytes(*value)),
                started_at: Timestamp::from_millis(i64::from_be_bytes(*started_at))
                    .map_err(|_| InvalidCursor)?,
                ticket_id: Uuid::from_slice(id).map_err(|_| InvalidCursor)?.into(),
            },
            total: Total { count: u64::from_be_bytes(*count), exact: *exact == 1 },
        })
    }
}
