//! The representation of a file that a client downloads: as stored, or with a byte-order mark, which Excel needs to detect
//! UTF-8. Length, ranges and entity tag are those of the representation.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::job::StoredFile;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    file: StoredFile,
    mark: &'static [u8],
}

impl FileView {
    pub fn of(file: StoredFile, with_mark: bool) -> Self {
        Self { file, mark: if with_mark { BYTE_ORDER_MARK } else { b"" } }
    }

    pub fn length(&self) -> u64 {
        self.file.bytes + self.mark.len() as u64
    }

    /// Strong entity tag, quoted.
    pub fn entity_tag(&self) -> String {
        let variant = if self.mark.is_empty() { "" } else { "-bom" };
        format!("\"{}{variant}\"", self.file.sha256)
    }

    /// The value of `Repr-Digest` (RFC 9530): the SHA-256 of the whole representation, also in partial responses.
    /// `None` with a byte-order mark: only the digest of the stored file is known.
    pub fn repr_digest(&self) -> Option<String> {
        if !self.mark.is_empty() {
            return None;
        }
        let digest = hex::decode(&self.file.sha256).ok()?;
        Some(format!("sha-256=:{}:", STANDARD.encode(digest)))
    }

    pub fn object_key(&self) -> &str {
        &self.file.object_key
    }

    /// Splits a range of the view into bytes of the mark and a range of the stored file.
    pub fn split(&self, range: &Range<u64>) -> (&'static [u8], Range<u64>) {
        let mark = self.mark.len() as u64;
        let within_mark = |at: u64| usize::try_from(at.min(mark)).unwrap_or(self.mark.len());
        let first = &self.mark[within_mark(range.start)..within_mark(range.end)];
        (first, range.start.saturating_sub(mark)..range.end.saturating_sub(mark))
    }
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
            missing_evaluations: Some(0),
        };
        FileView::of(file, with_mark)
    }

    #[test]
    fn range_may_start_or_end_inside_the_mark() {
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
    fn views_differ_in_length_and_entity_tag() {
        assert_eq!((view(false).length(), view(true).length()), (10, 13));
        assert_ne!(view(false).entity_tag(), view(true).entity_tag());
    }

    #[test]
    fn repr_digest_is_absent_with_a_byte_order_mark() {
        // RFC 9530 writes a digest as base64 between colons.
        assert_eq!(view(false).repr_digest().as_deref(), Some("sha-256=:qw==:"));
        assert_eq!(view(true).repr_digest(), None);
    }
}
