//! Messages as they are stored: their JSON, compressed by the service rather than by the database, which would do it
//! with a slower algorithm on the one machine that cannot be added to (`proto-docs/adr/0015-packed-transcripts.md`).
//!
//! Format 1, lengths in bytes, numbers little-endian:
//! the format (1), CRC-32 of everything after it (4), length of the JSON (4), the JSON as an LZ4 block.

use assay_contracts::conversation::Message;

/// The first byte of what this release writes.
const FORMAT: u8 = 1;

/// Format, checksum, length.
const HEADER: usize = 9;

/// No message list is larger: what claims to be is not unpacked.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// LZ4 blocks cannot hold more than so many bytes in one: what claims to is not unpacked.
const MAX_RATIO: usize = 255;

/// A conversation's messages, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedMessages(Vec<u8>);

/// Why messages cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// They cannot be written as JSON.
    #[error("the messages cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// They are too many bytes for one row.
    #[error("the messages have {0} bytes as JSON: {MAX_BYTES} can be stored")]
    TooLarge(usize),
}

/// Why packed messages cannot be read. The bytes themselves are not for the log: customers wrote them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// Another release wrote them, or nobody did.
    #[error("its format is not known to this release")]
    UnknownFormat,
    /// They are not what was written.
    #[error("its checksum or its length is wrong")]
    Damaged,
}

impl PackedMessages {
    /// Packs messages.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn pack(messages: &[Message]) -> Result<Self, PackError> {
        Self::pack_json(&serde_json::to_vec(messages)?)
    }

    fn pack_json(json: &[u8]) -> Result<Self, PackError> {
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX_BYTES);
        let length = length.ok_or(PackError::TooLarge(json.len()))?;
        let mut packed = vec![0; HEADER + lz4_flex::block::get_maximum_output_size(json.len())];
        // A block fits always into the room that its maximum leaves.
        let block = lz4_flex::block::compress_into(json, &mut packed[HEADER..])
            .map_err(|_| PackError::TooLarge(json.len()))?;
        packed.truncate(HEADER + block);
        packed[5..HEADER].copy_from_slice(&length.to_le_bytes());
        packed[0] = FORMAT;
        let checksum = crc32fast::hash(&packed[5..]);
        packed[1..5].copy_from_slice(&checksum.to_le_bytes());
        // It waits in the queue, and the room that was left over would wait with it.
        packed.shrink_to_fit();
        Ok(Self(packed))
    }

    /// The bytes to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The JSON of stored bytes. It is what [`PackedMessages::pack`] was given, byte for byte, or an error.
///
/// # Errors
/// [`UnpackError`].
pub fn unpack(packed: &[u8]) -> Result<String, UnpackError> {
    let (format, rest) = packed.split_first().ok_or(UnpackError::UnknownFormat)?;
    if *format != FORMAT {
        return Err(UnpackError::UnknownFormat);
    }
    let (checksum, rest) = rest.split_first_chunk().ok_or(UnpackError::Damaged)?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Err(UnpackError::Damaged);
    }
    let (length, block) = rest.split_first_chunk().ok_or(UnpackError::Damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| UnpackError::Damaged)?;
    if length > MAX_BYTES.min(block.len().saturating_mul(MAX_RATIO)) {
        return Err(UnpackError::Damaged);
    }
    let mut json = vec![0; length];
    let unpacked = lz4_flex::block::decompress_into(block, &mut json).map_err(|_| UnpackError::Damaged)?;
    if unpacked != length {
        return Err(UnpackError::Damaged);
    }
    String::from_utf8(json).map_err(|_| UnpackError::Damaged)
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::Conversation;

    use super::*;

    fn messages(content: &str) -> Vec<Message> {
        let body = serde_json::json!({"ticket_id": "T", "messages": [
            {"author": {"type": "contact", "external_id": "c"}, "content": content, "external_id": "1", "timestamp": 1},
            {"author": {"type": "mixed"}, "content": "Zoë 🦀 \u{1}", "external_id": "2", "timestamp": 2},
        ]});
        Conversation::parse(body.to_string().as_bytes()).unwrap().messages
    }

    #[test]
    fn what_is_unpacked_is_the_json_that_was_packed() {
        for content in ["x".to_owned(), "a word and ".repeat(100_000), "∀".repeat(70_000)] {
            let messages = messages(&content);
            let packed = PackedMessages::pack(&messages).unwrap();
            assert_eq!(unpack(packed.as_bytes()), Ok(serde_json::to_string(&messages).unwrap()));
        }
    }

    #[test]
    fn every_changed_bit_and_every_missing_end_is_found() {
        let packed = PackedMessages::pack(&messages("Where is my order? It is my second order.")).unwrap();
        let packed = packed.as_bytes();
        for bit in 0..packed.len() * 8 {
            let mut changed = packed.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(unpack(&changed).is_err(), "bit {bit}");
        }
        for length in 0..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_right_checksum_does_not_make_wrong_lengths_or_texts_right() {
        let block = lz4_flex::block::compress(b"[] and some more text");
        let invalid_text = lz4_flex::block::compress(b"[\"\xff\"]");
        for (length, block) in [
            (20, &block),
            (22, &block),
            (u32::MAX, &block),
            (1 << 30, &block),
            (5, &invalid_text),
            (0, &block),
        ] {
            let mut rest = length.to_le_bytes().to_vec();
            rest.extend_from_slice(block);
            let mut packed = vec![FORMAT];
            packed.extend_from_slice(&crc32fast::hash(&rest).to_le_bytes());
            packed.extend_from_slice(&rest);
            assert_eq!(unpack(&packed), Err(UnpackError::Damaged), "{length}");
        }
    }

    #[test]
    fn a_later_format_is_not_taken_for_damage() {
        let mut packed = PackedMessages::pack(&messages("x")).unwrap().as_bytes().to_vec();
        packed[0] = FORMAT + 1;
        assert_eq!(unpack(&packed), Err(UnpackError::UnknownFormat));
        assert_eq!(unpack(&[]), Err(UnpackError::UnknownFormat));
    }
}
