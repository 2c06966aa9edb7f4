//! Files: on a disk (`file:///PATH`) or in an S3-compatible store (`s3://BUCKET/PREFIX`).
//!
//! A file appears under its key only when it is complete: both kinds of store publish an upload atomically.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use sha2::{Digest, Sha256};
use url::Url;

/// Parts of an upload; S3 wants 5 MiB or more for every part but the last.
const PART_BYTES: usize = 8 * 1024 * 1024;

/// The object store failed. The text is for the log, never for an answer.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// `objects.url` cannot be used.
    #[error("objects.url `{url}` cannot be used: {reason}; use file:///PATH or s3://BUCKET/PREFIX")]
    Address {
        /// As configured.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file.
    #[error("file `{0}` does not exist")]
    NotFound(String),
    /// The store refused or is away.
    #[error("object store failed: {0}")]
    Store(object_store::Error),
}

impl From<object_store::Error> for ObjectError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => Self::NotFound(path),
            other => Self::Store(other),
        }
    }
}

/// An open object store.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
}

/// What is known of a file after it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenObject {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, lower-case hexadecimal.
    pub sha256: String,
}

impl Objects {
    /// Opens the store at `url`. For a disk the folder is made if it is missing. Credentials and region of an S3 store
    /// are read from `options` (names as in `object_store`, for example `aws_access_key_id`).
    ///
    /// # Errors
    /// When the address has an unknown scheme or the folder cannot be made.
    pub fn open<I>(url: &str, options: I) -> Result<Self, ObjectError>
    where
        I: IntoIterator<Item = (String, String)>,
    {
        let refuse = |reason: String| ObjectError::Address { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|error| refuse(error.to_string()))?;
        match parsed.scheme() {
            "file" => {
                let folder = parsed.to_file_path().map_err(|()| refuse("not an absolute path".to_owned()))?;
                std::fs::create_dir_all(&folder).map_err(|error| refuse(error.to_string()))?;
                let disk =
                    LocalFileSystem::new_with_prefix(&folder).map_err(|error| refuse(error.to_string()))?;
                // An export that a client was told of must survive the loss of power.
                Ok(Self { store: Arc::new(disk.with_fsync(true)) })
            }
            "s3" => {
                let (store, prefix) = object_store::parse_url_opts(&parsed, options)
                    .map_err(|error| refuse(error.to_string()))?;
                Ok(Self { store: Arc::new(PrefixStore::new(Arc::<dyn ObjectStore>::from(store), prefix)) })
            }
            other => Err(refuse(format!("unknown scheme `{other}`"))),
        }
    }

    /// Begins to write a file. Nothing appears under `key` before [`ObjectWriter::finish`].
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn create(&self, key: &str) -> Result<ObjectWriter, ObjectError> {
        let upload = self.store.put_multipart(&Path::from(key)).await?;
        Ok(ObjectWriter { upload, part: Vec::with_capacity(PART_BYTES), bytes: 0, hasher: Sha256::new() })
    }

    /// Size of a file in bytes.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`] when there is none.
    pub async fn size(&self, key: &str) -> Result<u64, ObjectError> {
        Ok(self.store.head(&Path::from(key)).await?.size)
    }

    /// Streams a part of a file, `range` in bytes.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`] when there is none.
    pub async fn read(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, ObjectError>>, ObjectError> {
        let options = object_store::GetOptions { range: Some(range.into()), ..Default::default() };
        let result = self.store.get_opts(&Path::from(key), options).await?;
        Ok(result.into_stream().map(|chunk| chunk.map_err(ObjectError::from)).boxed())
    }

    /// Removes a file; one that is gone already is fine.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        match self.store.delete(&Path::from(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A file that is being written.
pub struct ObjectWriter {
    upload: Box<dyn MultipartUpload>,
    part: Vec<u8>,
    bytes: u64,
    hasher: Sha256,
}

impl ObjectWriter {
    /// Appends `content`. Memory stays bounded by two parts.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn write(&mut self, content: &[u8]) -> Result<(), ObjectError> {
        self.hasher.update(content);
        self.bytes += content.len() as u64;
        let mut rest = content;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PART_BYTES - self.part.len()));
            self.part.extend_from_slice(now);
            rest = later;
            if self.part.len() == PART_BYTES {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// Publishes the file under its key.
    ///
    /// # Errors
    /// When the store refuses; then nothing was published.
    pub async fn finish(mut self) -> Result<WrittenObject, ObjectError> {
        if !self.part.is_empty() || self.bytes == 0 {
            self.send_part().await?;
        }
        self.upload.complete().await?;
        let digest = self.hasher.finalize();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(WrittenObject { bytes: self.bytes, sha256 })
    }

    /// Gives up and removes what was sent.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn abort(mut self) -> Result<(), ObjectError> {
        Ok(self.upload.abort().await?)
    }

    async fn send_part(&mut self) -> Result<(), ObjectError> {
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(PART_BYTES));
        Ok(self.upload.put_part(PutPayload::from(part)).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &std::path::Path) -> Objects {
        Objects::open(Url::from_directory_path(folder).unwrap().as_str(), []).unwrap()
    }

    async fn read(objects: &Objects, key: &str, range: Range<u64>) -> Vec<u8> {
        let mut stream = objects.read(key, range).await.unwrap();
        let mut content = Vec::new();
        while let Some(chunk) = stream.next().await {
            content.extend_from_slice(&chunk.unwrap());
        }
        content
    }

    #[tokio::test]
    async fn a_file_appears_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let objects = open(folder.path());
        let mut writer = objects.create("exports/a.csv").await.unwrap();
        let content = vec![b'x'; PART_BYTES + 17];
        writer.write(&content).await.unwrap();
        assert!(matches!(objects.size("exports/a.csv").await, Err(ObjectError::NotFound(_))));
        let written = writer.finish().await.unwrap();
        assert_eq!(written.bytes, content.len() as u64);
        assert_eq!(objects.size("exports/a.csv").await.unwrap(), written.bytes);
        assert_eq!(read(&objects, "exports/a.csv", 2..6).await, b"xxxx");
    }

    #[tokio::test]
    async fn an_aborted_file_leaves_nothing_and_deleting_twice_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        let objects = open(folder.path());
        let mut writer = objects.create("a.csv").await.unwrap();
        writer.write(b"half").await.unwrap();
        writer.abort().await.unwrap();
        assert!(matches!(objects.size("a.csv").await, Err(ObjectError::NotFound(_))));
        objects.delete("a.csv").await.unwrap();
        objects.delete("a.csv").await.unwrap();
    }

    #[test]
    fn an_unknown_scheme_is_refused() {
        assert!(matches!(Objects::open("ftp://host/x", []), Err(ObjectError::Address { .. })));
        assert!(matches!(Objects::open("not an address", []), Err(ObjectError::Address { .. })));
    }
}
