//! Writes one file, in parts, so that memory stays bounded whatever its length.

use bytes::Bytes;
use object_store::MultipartUpload;
use sha2::{Digest, Sha256};

use super::deadlines::{Deadlines, in_time};
use super::{ObjectError, WrittenObject};

/// Parts of an upload; S3 wants 5 MiB or more for every part but the last. It takes 10,000 of them: files of 52 GB.
pub(super) const PART_BYTES: usize = 5 * 1024 * 1024;

/// A file that is being written. After an error, or when a call is given up half-way, nothing is left to do but
/// [`ObjectWriter::abort`].
pub struct ObjectWriter {
    upload: Box<dyn MultipartUpload>,
    /// The next part, in the pieces that it came in: none of them is ever copied.
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
    /// When the store refuses or does not answer in time.
    pub async fn write(&mut self, content: Bytes) -> Result<(), ObjectError> {
        self.hasher.update(&content);
        self.bytes += content.len() as u64;
        let mut rest = content;
        while !rest.is_empty() {
            // Every part but the last has the same length: some stores insist on it.
            let piece = rest.split_to(rest.len().min(PART_BYTES - self.part_bytes));
            self.part_bytes += piece.len();
            self.part.push(piece);
            if self.part_bytes == PART_BYTES {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Publishes the file under its key. The last call but for [`ObjectWriter::abort`].
    ///
    /// # Errors
    /// When the store refuses; then nothing was published. When the store does not answer in time; then it may publish
    /// the file all the same.
    pub async fn finish(&mut self) -> Result<WrittenObject, ObjectError> {
        if !self.part.is_empty() || self.bytes == 0 {
            self.send_part().await?;
        }
        in_time(self.deadlines.transfer, self.upload.complete()).await?;
        let digest = self.hasher.finalize_reset();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(WrittenObject { bytes: self.bytes, sha256 })
    }

    /// Gives up and removes what was sent.
    ///
    /// # Errors
    /// When the store refuses or does not answer in time.
    pub async fn abort(mut self) -> Result<(), ObjectError> {
        in_time(self.deadlines.answer, self.upload.abort()).await
    }

    async fn send_part(&mut self) -> Result<(), ObjectError> {
        let part = std::mem::take(&mut self.part).into_iter().collect();
        self.part_bytes = 0;
        in_time(self.deadlines.transfer, self.upload.put_part(part)).await
    }
}
