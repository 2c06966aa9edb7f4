//! Multipart upload of one file with bounded memory.

use bytes::Bytes;
use object_store::MultipartUpload;
use sha2::{Digest, Sha256};

use super::deadlines::{Deadlines, with_deadline};
use super::{ObjectError, WrittenObject};

/// Part size. S3 requires at least 5 MiB for every part but the last, and allows 10,000 parts: files up to 52 GB.
pub(super) const PART_BYTES: usize = 5 * 1024 * 1024;

/// A file being written. After an error or a cancelled call, only [`ObjectWriter::abort`] is allowed.
pub struct ObjectWriter {
    upload: Box<dyn MultipartUpload>,
    /// Chunks of the next part, never copied.
    part: Vec<Bytes>,
    part_bytes: usize,
    bytes: u64,
    hasher: Sha256,
    deadlines: Deadlines,
}

impl ObjectWriter {
    pub(super) fn new(upload: Box<dyn MultipartUpload>, deadlines: Deadlines) -> Self {
        Self { upload, part: Vec::new(), part_bytes: 0, bytes: 0, hasher: Sha256::new(), deadlines }
    }

    /// Appends `content`. Memory stays bounded by one part and one `content`.
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn write(&mut self, content: Bytes) -> Result<(), ObjectError> {
        self.hasher.update(&content);
        self.bytes += content.len() as u64;
        let mut rest = content;
        while !rest.is_empty() {
            // Some stores require equal lengths of all parts but the last.
            let piece = rest.split_to(rest.len().min(PART_BYTES - self.part_bytes));
            self.part_bytes += piece.len();
            self.part.push(piece);
            if self.part_bytes == PART_BYTES {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Publishes the file under its key. Only [`ObjectWriter::abort`] may follow.
    ///
    /// # Errors
    /// When the store refuses: nothing is published. When it does not respond in time: the file may still be published.
    pub async fn finish(&mut self) -> Result<WrittenObject, ObjectError> {
        // An upload has at least one part, also that of an empty file.
        if !self.part.is_empty() || self.bytes == 0 {
            self.send_part().await?;
        }
        with_deadline(self.deadlines.transfer, self.upload.complete()).await?;
        let sha256 = hex::encode(self.hasher.finalize_reset());
        Ok(WrittenObject { bytes: self.bytes, sha256 })
    }

    /// Aborts the upload and deletes its parts.
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn abort(mut self) -> Result<(), ObjectError> {
        with_deadline(self.deadlines.response, self.upload.abort()).await
    }

    async fn send_part(&mut self) -> Result<(), ObjectError> {
        let part = std::mem::take(&mut self.part).into_iter().collect();
        self.part_bytes = 0;
        with_deadline(self.deadlines.transfer, self.upload.put_part(part)).await
    }
}
