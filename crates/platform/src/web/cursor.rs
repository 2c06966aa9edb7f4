//! Key-set pagination of lists, newest first: the position of a page in its list, and the signed cursors that carry it.

use assay_contracts::page::{Page, PageInfo};
use assay_contracts::time::Timestamp;
use uuid::Uuid;

use crate::auth::KeyRing;

/// The last item of a page. Items created meanwhile sort before the first page, so that no item is skipped or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Creation time of the item.
    pub created_at: Timestamp,
    /// Its id, which breaks ties between items with the same creation time.
    pub id: Uuid,
}

/// Malformed, or signed for another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor was not made by this service for this list")]
pub struct InvalidCursor;

/// The cursors of one list.
pub struct Cursors<'a> {
    keys: &'a KeyRing,
    purpose: String,
}

impl<'a> Cursors<'a> {
    /// `list` names one list of one organization, such as `exports of ID`. It is a part of what is signed.
    pub fn new(keys: &'a KeyRing, list: &str) -> Self {
        Self { keys, purpose: format!("cursor of {list}") }
    }

    /// Encodes a position as an opaque, signed cursor.
    pub fn encode(&self, position: &Position) -> String {
        let moment = position.created_at.as_millis().to_be_bytes();
        self.keys.encode_signed(&self.purpose, &[&moment[..], position.id.as_bytes()].concat())
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// For any text that [`Self::encode`] did not make for this list.
    pub fn decode(&self, cursor: &str) -> Result<Position, InvalidCursor> {
        let content = self.keys.decode_signed(&self.purpose, cursor).map_err(|_| InvalidCursor)?;
        let (moment, id) = content.split_first_chunk().ok_or(InvalidCursor)?;
        Ok(Position {
            created_at: Timestamp::from_millis(i64::from_be_bytes(*moment)).map_err(|_| InvalidCursor)?,
            id: Uuid::from_slice(id).map_err(|_| InvalidCursor)?,
        })
    }

    /// Cuts a result of at most `limit + 1` items to a page: the extra item shows that there is a next page.
    pub fn page<T>(&self, mut found: Vec<T>, limit: u32, position: impl FnOnce(&T) -> Position) -> Page<T> {
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_next_page = found.len() > wanted;
        found.truncate(wanted);
        let last = found.last().filter(|_| has_next_page);
        let next_cursor = last.map(|last| self.encode(&position(last)));
        Page { data: found, page_info: PageInfo { has_next_page, limit, next_cursor } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::new_id;

    fn keys() -> KeyRing {
        KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap()
    }

    fn position() -> Position {
        Position { created_at: Timestamp::saturating_from_millis(17), id: new_id() }
    }

    #[test]
    fn cursor_is_valid_for_its_own_list_only() {
        let (keys, position) = (keys(), position());
        let exports = Cursors::new(&keys, "exports of 1");
        let cursor = exports.encode(&position);
        assert_eq!(exports.decode(&cursor), Ok(position));
        for other in ["exports of 2", "webhooks of 1", "exports of", ""] {
            assert_eq!(Cursors::new(&keys, other).decode(&cursor), Err(InvalidCursor), "{other}");
        }
        let foreign = keys.encode_signed("exports of 1", b"content");
        for text in ["", "x", &cursor[1..], &foreign] {
            assert_eq!(exports.decode(text), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn signed_content_that_is_no_position_is_refused() {
        let keys = keys();
        for length in [0, 7, 8, 23, 25] {
            let cursor = keys.encode_signed("cursor of a list", &vec![0; length]);
            assert_eq!(Cursors::new(&keys, "a list").decode(&cursor), Err(InvalidCursor), "{length} bytes");
        }
    }

    #[test]
    fn only_a_page_with_a_successor_has_a_cursor() {
        let keys = keys();
        let (list, found) = (Cursors::new(&keys, "a list"), vec![position(), position(), position()]);
        let page = list.page(found.clone(), 2, |last| *last);
        assert_eq!(page.data, found[..2]);
        let cursor = page.page_info.next_cursor.unwrap();
        assert_eq!((page.page_info.has_next_page, list.decode(&cursor)), (true, Ok(found[1])));
        let page = list.page(found.clone(), 3, |last| *last);
        assert_eq!((page.data, page.page_info.next_cursor), (found, None));
        assert!(!page.page_info.has_next_page);
    }
}
