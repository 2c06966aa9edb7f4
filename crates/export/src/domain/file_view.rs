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
