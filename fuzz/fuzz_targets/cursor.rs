//! Any text as a cursor: it is one only when the service made it, for this list, with one of its keys.

#![no_main]

#[path = "alter.rs"]
mod alter;

use std::sync::LazyLock;

use assay_contracts::time::Timestamp;
use assay_platform::auth::KeyRing;
use assay_platform::web::cursor::{Cursors, Position};
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).expect("a good key")
});
static LIST: LazyLock<Cursors> = LazyLock::new(|| Cursors::new(&KEYS, "exports of 7"));

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        check_text(text);
    }
    if let Some((position, changes)) = read_position(data) {
        check_position(position, changes);
    }
});

/// A text that is decoded is the one that the service makes for its position: no position has a second cursor.
fn check_text(text: &str) {
    if let Ok(position) = LIST.decode(text) {
        assert_eq!(LIST.encode(&position), text, "two texts for one position");
    }
}

/// Every position comes back, and no altered cursor does.
fn check_position(position: Position, changes: &[u8]) {
    let cursor = LIST.encode(&position);
    assert_eq!(LIST.decode(&cursor), Ok(position));
    assert!(Cursors::new(&KEYS, "exports of 8").decode(&cursor).is_err(), "another list's");
    let altered = alter::altered(&cursor, changes);
    assert!(altered == cursor || LIST.decode(&altered).is_err(), "{altered}");
}

/// A position, and the bytes after it.
fn read_position(data: &[u8]) -> Option<(Position, &[u8])> {
    let (moment, rest) = data.split_first_chunk::<8>()?;
    let (id, changes) = rest.split_first_chunk::<16>()?;
    let created_at = Timestamp::from_millis(i64::from_be_bytes(*moment)).ok()?;
    Some((Position { created_at, id: Uuid::from_bytes(*id) }, changes))
}
