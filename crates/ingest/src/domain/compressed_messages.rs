//! Messages as they are stored: their JSON, compressed by the service rather than by the database, which has a slower
//! algorithm and, unlike the service, cannot be scaled out (`proto-docs/adr/0015-compressed-transcripts.md`).
//!
//! Format 1, lengths in bytes, numbers little-endian:
//! the format (1), CRC-32 of everything after it (4), length of the JSON (4), the JSON as an LZ4 block.

use std::ops::Range;

use assay_contracts::conversation::Message;

/// The first byte; identifies the format.
const FORMAT: u8 = 1;

/// Positions of checksum and length in the header.
const CHECKSUM: Range<usize> = 1..5;
const LENGTH: Range<usize> = 5..9;
const HEADER_BYTES: usize = LENGTH.end;

/// Bytes of a message in JSON beside its content: more than most have.
const BYTES_BESIDE_CONTENT: usize = 512;

/// Maximum size of the JSON; a larger length in a header is treated as damage.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Maximum compression ratio of LZ4; a length beyond it is treated as damage.
const MAX_RATIO: usize = 255;

/// A conversation's messages, compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressedMessages(Vec<u8>);

/// Messages could not be compressed.
#[derive(Debug, thiserror::Error)]
pub enum CompressError {
    #[error("the messages cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the messages have {0} bytes as JSON: at most {MAX_BYTES} can be stored")]
    TooLarge(usize),
}

/// Stored messages could not be decompressed. The bytes themselves must not be logged: they are customer data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// Written by another release, or not by this service.
    #[error("its format is not known to this release")]
    UnknownFormat,
    /// The bytes were altered or truncated.
    #[error("its checksum or its length is wrong")]
    Damaged,
}

impl CompressedMessages {
    pub fn compress(messages: &[Message]) -> Result<Self, CompressError> {
        // Allocated at once: a buffer that grows has up to twice the size of a large conversation. A sixteenth is for escapes.
        let expected = messages.iter().map(|message| message.content.len() / 16 * 17 + BYTES_BESIDE_CONTENT);
        let mut json = Vec::with_capacity(expected.sum());
        serde_json::to_writer(&mut json, messages)?;
        Self::compress_json(&json)
    }

    fn compress_json(json: &[u8]) -> Result<Self, CompressError> {
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX_BYTES);
        let length = length.ok_or(CompressError::TooLarge(json.len()))?;
        let mut compressed = vec![0; HEADER_BYTES + lz4_flex::block::get_maximum_output_size(json.len())];
        // Cannot fail: the buffer has the maximum size of a block.
        let block_bytes = lz4_flex::block::compress_into(json, &mut compressed[HEADER_BYTES..])
            .map_err(|_| CompressError::TooLarge(json.len()))?;
        compressed.truncate(HEADER_BYTES + block_bytes);
        compressed[LENGTH].copy_from_slice(&length.to_le_bytes());
        compressed[0] = FORMAT;
        let checksum = crc32fast::hash(&compressed[CHECKSUM.end..]);
        compressed[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        // It may wait in the queue: free the unused capacity.
        compressed.shrink_to_fit();
        Ok(Self(compressed))
    }

    /// The bytes to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The JSON that [`CompressedMessages::compress`] stored, byte for byte, or an error.
pub fn decompress(compressed: &[u8]) -> Result<String, DecompressError> {
    let (format, rest) = compressed.split_first().ok_or(DecompressError::UnknownFormat)?;
    if *format != FORMAT {
        return Err(DecompressError::UnknownFormat);
    }
    let (checksum, rest) = rest.split_first_chunk().ok_or(DecompressError::Damaged)?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Err(DecompressError::Damaged);
    }
    let (length, block) = rest.split_first_chunk().ok_or(DecompressError::Damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| DecompressError::Damaged)?;
    if length > MAX_BYTES.min(block.len().saturating_mul(MAX_RATIO)) {
        return Err(DecompressError::Damaged);
    }
    let mut json = vec![0; length];
    let written = lz4_flex::block::decompress_into(block, &mut json).map_err(|_| DecompressError::Damaged)?;
    if written != length {
        return Err(DecompressError::Damaged);
    }
    String::from_utf8(json).map_err(|_| DecompressError::Damaged)
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
    fn decompressed_json_equals_the_original() {
        for content in ["x".to_owned(), "a word and ".repeat(100_000), "∀".repeat(70_000)] {
            let messages = messages(&content);
            let compressed = CompressedMessages::compress(&messages).unwrap();
            assert_eq!(decompress(compressed.as_bytes()), Ok(serde_json::to_string(&messages).unwrap()));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let compressed =
            CompressedMessages::compress(&messages("Where is my order? It is my second order.")).unwrap();
        let compressed = compressed.as_bytes();
        for bit in 0..compressed.len() * 8 {
            let mut changed = compressed.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decompress(&changed).is_err(), "bit {bit}");
        }
        for length in 0..compressed.len() {
            assert!(decompress(&compressed[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn wrong_length_or_text_is_detected_despite_a_valid_checksum() {
        // The text has 21 bytes, the invalid one 5.
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
            let mut compressed = vec![FORMAT];
            compressed.extend_from_slice(&crc32fast::hash(&rest).to_le_bytes());
            compressed.extend_from_slice(&rest);
            assert_eq!(decompress(&compressed), Err(DecompressError::Damaged), "{length}");
        }
    }

    #[test]
    fn later_format_is_not_reported_as_damage() {
        let mut compressed = CompressedMessages::compress(&messages("x")).unwrap().as_bytes().to_vec();
        compressed[0] = FORMAT + 1;
        assert_eq!(decompress(&compressed), Err(DecompressError::UnknownFormat));
        assert_eq!(decompress(&[]), Err(DecompressError::UnknownFormat));
    }
}
