//! A file as a client sees it: as it was written, or with a byte-order mark in front, which Excel needs to take it for
//! UTF-8. Length, ranges and entity tag are those of what is seen.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::job::StoredFile;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a client sees of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    file: StoredFile,
    mark: &'static [u8],
}

impl FileView {
    /// A view of `file`, with a byte-order mark or without.
    pub fn of(file: StoredFile, with_mark: bool) -> Self {
        Self { file, mark: if with_mark { BYTE_ORDER_MARK } else { b"" } }
    }

    /// Length in bytes.
    pub fn length(&self) -> u64 {
        self.file.bytes + self.mark.len() as u64
    }

    /// The strong entity tag, with its quotes.
    pub fn entity_tag(&self) -> String {
        let variant = if self.mark.is_empty() { "" } else { "-bom" };
        format!("\"{}{variant}\"", self.file.sha256)
    }

    /// The value of `Repr-Digest` (RFC 9530): the SHA-256 of the whole view, also beside a range of it. None for a view
    /// whose digest was not computed when the file was written.
    pub fn repr_digest(&self) -> Option<String> {
        if !self.mark.is_empty() {
            return None;
        }
        let digest = bytes_of_hex(&self.file.sha256)?;
        Some(format!("sha-256=:{}:", STANDARD.encode(digest)))
    }

    /// Where the file is stored.
    pub fn object_key(&self) -> &str {
        &self.file.object_key
    }

    /// A range of the view as the bytes to send first and the range of the stored file to send after them.
    pub fn split(&self, range: &Range<u64>) -> (&'static [u8], Range<u64>) {
        let mark = self.mark.len() as u64;
        let within_mark = |at: u64| usize::try_from(at.min(mark)).unwrap_or(self.mark.len());
        let first = &self.mark[within_mark(range.start)..within_mark(range.end)];
        (first, range.start.saturating_sub(mark)..range.end.saturating_sub(mark))
    }
}

/// The bytes that hexadecimal digits stand for.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.len().is_multiple_of(2).then(|| text.as_bytes().chunks_exact(2))?;
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use assay_contracts::time::Timestamp;

    use super::*;

    fn view(with_mark: bool) -> FileView {
        let file = StoredFile {
            object_key: "k".to_owned(),
            bytes: 10,
            sha256: "ab".to_owned(),
            expires_at: Timestamp::MAX,
        };
        FileView::of(file, with_mark)
    }

    #[test]
    fn a_range_may_begin_or_end_within_the_mark() {
        let cases: [(Range<u64>, &[u8], Range<u64>); 5] = [
            (0..13, b"\xEF\xBB\xBF", 0..10),
            (1..2, b"\xBB", 0..0),
            (2..5, b"\xBF", 0..2),
            (3..13, b"", 0..10),
            (7..9, b"", 4..6),
        ];
        for (range, mark, rest) in cases {
            assert_eq!(view(true).split(&range), (mark, rest), "{range:?}");
        }
        assert_eq!(view(false).split(&(2..5)), (b"".as_slice(), 2..5));
    }

    #[test]
    fn the_two_views_differ_in_length_and_tag() {
        assert_eq!((view(false).length(), view(true).length()), (10, 13));
        assert_ne!(view(false).entity_tag(), view(true).entity_tag());
    }

    #[test]
    fn the_digest_is_that_of_the_file_and_a_mark_has_none() {
        // RFC 9530 writes a digest as base64 between colons.
        assert_eq!(view(false).repr_digest().as_deref(), Some("sha-256=:qw==:"));
        assert_eq!(view(true).repr_digest(), None);
    }
}
