//! Files: on a disk (`file:///PATH`) or in an S3-compatible store (`s3://BUCKET/PREFIX`).
//!
//! A file appears under its key only when it is complete: both kinds of store publish an upload atomically. Every call has a
//! deadline, except for streaming the content of a file, which is as slow as its reader, and for listing and cleaning
//! up folders on a disk.

mod deadlines;
mod listing;
#[cfg(feature = "distributed")]
mod s3;
mod writer;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_contracts::time::Timestamp;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use self::deadlines::{Deadlines, with_deadline};
pub use self::listing::{ListedObject, Listing};
use self::listing::{remove_empty_folders, remove_unfinished};
pub use self::writer::ObjectWriter;

/// The object store failed. The text is for the log, never for a response.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// `objects.url` is invalid.
    #[error("objects.url `{url}` cannot be used: {reason}; use file:///PATH or s3://BUCKET/PREFIX")]
    Address {
        /// Value as configured.
        url: String,
        /// Cause.
        reason: String,
    },
    /// There is no such file.
    #[error("file `{0}` does not exist")]
    NotFound(String),
    /// The store refused or is unreachable.
    #[error("object store failed: {0}")]
    Store(object_store::Error),
    /// The store did not respond in time; the operation may still complete.
    #[error("object store did not respond within {0:?}: check that it runs and can be reached")]
    Deadline(Duration),
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
    /// The folder of a store on disk.
    folder: Option<PathBuf>,
    deadlines: Deadlines,
}

/// Size and digest of a written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenObject {
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, lower-case hexadecimal.
    pub sha256: String,
}

impl Objects {
    /// Opens the store at `url`. A missing folder on disk is created. Credentials and region of an S3 store come from
    /// `options` (names of `object_store`, for example `aws_access_key_id`).
    ///
    /// # Errors
    /// When the address has an unknown scheme, the folder cannot be created, or an option of an S3 store is unknown.
    pub fn open<I>(url: &str, options: I) -> Result<Self, ObjectError>
    where
        I: IntoIterator<Item = (String, String)>,
    {
        let refuse = |reason: String| ObjectError::Address { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|error| refuse(error.to_string()))?;
        let (store, folder): (Arc<dyn ObjectStore>, _) = match parsed.scheme() {
            "file" => {
                let folder = parsed.to_file_path().map_err(|()| refuse("not an absolute path".to_owned()))?;
                std::fs::create_dir_all(&folder).map_err(|error| refuse(error.to_string()))?;
                let disk =
                    LocalFileSystem::new_with_prefix(&folder).map_err(|error| refuse(error.to_string()))?;
                // A completed export must survive power loss.
                (Arc::new(disk.with_fsync(true)), Some(folder))
            }
            #[cfg(feature = "distributed")]
            "s3" => (Arc::new(s3::open(&parsed, options).map_err(refuse)?), None),
            #[cfg(not(feature = "distributed"))]
            "s3" => {
                drop(options);
                return Err(refuse(format!("it is an S3 address, {}", crate::NOT_IN_THIS_BUILD)));
            }
            other => return Err(refuse(format!("unknown scheme `{other}`"))),
        };
        Ok(Self { store, folder, deadlines: Deadlines::default() })
    }

    /// Starts writing a file. Nothing appears under `key` before [`ObjectWriter::finish`].
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn create(&self, key: &str) -> Result<ObjectWriter, ObjectError> {
        let key = Path::from(key);
        let upload = with_deadline(self.deadlines.response, self.store.put_multipart(&key)).await?;
        Ok(ObjectWriter::new(upload, self.deadlines))
    }

    /// Size of a file in bytes.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`] when there is none.
    pub async fn size(&self, key: &str) -> Result<u64, ObjectError> {
        let key = Path::from(key);
        Ok(with_deadline(self.deadlines.response, self.store.head(&key)).await?.size)
    }

    /// Streams the byte `range` of a file.
    ///
    /// # Errors
    /// [`ObjectError::NotFound`] when there is none.
    pub async fn read(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, ObjectError>>, ObjectError> {
        let options = object_store::GetOptions { range: Some(range.into()), ..Default::default() };
        let key = Path::from(key);
        let result = with_deadline(self.deadlines.response, self.store.get_opts(&key, options)).await?;
        Ok(result.into_stream().map(|chunk| chunk.map_err(ObjectError::from)).boxed())
    }

    /// Deletes a file; a missing file is not an error.
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        let key = Path::from(key);
        match with_deadline(self.deadlines.response, self.store.delete(&key)).await {
            Ok(()) | Err(ObjectError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists the files whose keys begin with the folder `prefix`; on a disk also the files of unfinished uploads.
    pub fn list(&self, prefix: &str) -> Listing {
        match &self.folder {
            Some(folder) => Listing::of_folder(folder, prefix, self.deadlines),
            None => Listing::of_store(self.store.list(Some(&Path::from(prefix))), self.deadlines),
        }
    }

    /// Deletes a file that was listed; a missing file is not an error. The upload of an unfinished one fails at its end.
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn delete_listed(&self, object: &ListedObject) -> Result<(), ObjectError> {
        match &object.unfinished {
            Some(file) => remove_unfinished(file.clone()).await,
            None => self.delete(&object.key).await,
        }
    }

    /// Removes what deleted files leave on a disk: the empty folders below the folder `prefix` that were last changed before
    /// `before`. A bucket has no folders.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn remove_empty_folders(&self, prefix: &str, before: Timestamp) -> Result<(), ObjectError> {
        match &self.folder {
            Some(folder) => remove_empty_folders(folder.join(prefix), before).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::writer::PART_BYTES;
    use super::*;

    fn open() -> (tempfile::TempDir, Objects) {
        let folder = tempfile::tempdir().unwrap();
        let url = Url::from_directory_path(folder.path()).unwrap();
        (folder, Objects::open(url.as_str(), []).unwrap())
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
    async fn file_appears_only_when_complete() {
        let (_folder, objects) = open();
        let mut writer = objects.create("exports/a.csv").await.unwrap();
        let content = (0..PART_BYTES + 17).map(|index| (index % 251) as u8).collect::<Vec<_>>();
        // Chunks that do not align with the part size.
        for piece in content.chunks(100_000) {
            writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        assert!(matches!(objects.size("exports/a.csv").await, Err(ObjectError::NotFound(_))));
        let written = writer.finish().await.unwrap();
        assert_eq!(written.bytes, content.len() as u64);
        assert_eq!(objects.size("exports/a.csv").await.unwrap(), written.bytes);
        assert!(read(&objects, "exports/a.csv", 0..written.bytes).await == content);
        assert_eq!(read(&objects, "exports/a.csv", 2..6).await, [2, 3, 4, 5]);
    }

    #[tokio::test]
    async fn aborted_upload_leaves_nothing_and_delete_is_idempotent() {
        let (_folder, objects) = open();
        let mut writer = objects.create("a.csv").await.unwrap();
        writer.write(Bytes::from_static(b"half")).await.unwrap();
        writer.abort().await.unwrap();
        assert!(matches!(objects.size("a.csv").await, Err(ObjectError::NotFound(_))));
        objects.delete("a.csv").await.unwrap();
        objects.delete("a.csv").await.unwrap();
    }

    async fn listed(objects: &Objects, prefix: &str) -> Vec<(String, bool)> {
        let mut listing = objects.list(prefix);
        let mut found = Vec::new();
        loop {
            let portion = listing.next(2).await.unwrap();
            if portion.is_empty() {
                found.sort();
                return found;
            }
            found.extend(portion.into_iter().map(|object| (object.key.clone(), object.is_unfinished())));
        }
    }

    #[tokio::test]
    async fn listing_has_finished_and_unfinished_files() {
        let (_folder, objects) = open();
        assert_eq!(listed(&objects, "exports").await, []);
        for key in ["exports/a/1.csv", "exports/a/2.csv", "exports/b/c/1.csv", "other/1.csv"] {
            objects.create(key).await.unwrap().finish().await.unwrap();
        }
        // Leaked, as by a process that was killed.
        std::mem::forget(objects.create("exports/a/2.csv").await.unwrap());
        std::mem::forget(objects.create("exports/d/1.csv").await.unwrap());
        let all = listed(&objects, "exports").await;
        let expected = [
            ("exports/a/1.csv", false),
            ("exports/a/2.csv", false),
            ("exports/a/2.csv", true),
            ("exports/b/c/1.csv", false),
            ("exports/d/1.csv", true),
        ];
        assert_eq!(all, expected.map(|(key, is_unfinished)| (key.to_owned(), is_unfinished)));
    }

    #[tokio::test]
    async fn deleting_an_unfinished_upload_keeps_the_finished_file() {
        let (_folder, objects) = open();
        objects.create("exports/1.csv").await.unwrap().finish().await.unwrap();
        std::mem::forget(objects.create("exports/1.csv").await.unwrap());
        let found = objects.list("exports").next(10).await.unwrap();
        let unfinished = found.iter().find(|object| object.is_unfinished()).unwrap();
        assert!(crate::runtime::now().as_millis() - unfinished.modified.as_millis() < 60_000);
        objects.delete_listed(unfinished).await.unwrap();
        objects.delete_listed(unfinished).await.unwrap();
        assert_eq!(listed(&objects, "exports").await, [("exports/1.csv".to_owned(), false)]);
    }

    #[tokio::test]
    async fn empty_folders_older_than_the_limit_are_removed() {
        let (folder, objects) = open();
        objects.remove_empty_folders("exports", crate::runtime::now()).await.unwrap();
        for key in ["exports/a/1/1.csv", "exports/a/2/1.csv", "exports/b/1/1.csv", "other/1/1.csv"] {
            objects.create(key).await.unwrap().finish().await.unwrap();
        }
        for key in ["exports/a/1/1.csv", "exports/b/1/1.csv", "other/1/1.csv"] {
            objects.delete(key).await.unwrap();
        }
        let exists = |path: &str| folder.path().join(path).is_dir();
        objects.remove_empty_folders("exports", crate::runtime::now().plus_millis(-60_000)).await.unwrap();
        assert!(exists("exports/a/1") && exists("exports/b/1"), "younger");
        objects.remove_empty_folders("exports", crate::runtime::now().plus_millis(1)).await.unwrap();
        assert!(!exists("exports/a/1") && !exists("exports/b"), "empty and old");
        assert!(exists("other/1"), "outside of the prefix");
        assert_eq!(listed(&objects, "exports").await, [("exports/a/2/1.csv".to_owned(), false)]);
        objects.create("exports/b/1/1.csv").await.unwrap().finish().await.unwrap();
    }

    /// A store that accepts connections and never responds.
    fn silent_store() -> (std::net::TcpListener, Objects) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let options = [
            ("aws_endpoint", endpoint.as_str()),
            ("aws_allow_http", "true"),
            ("aws_access_key_id", "id"),
            ("aws_secret_access_key", "secret"),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut objects = Objects::open("s3://files/of/assay", options).unwrap();
        let soon = Duration::from_millis(50);
        objects.deadlines = Deadlines { response: soon, transfer: soon };
        (listener, objects)
    }

    #[tokio::test]
    async fn unresponsive_store_fails_every_call_at_its_deadline() {
        let (_listener, objects) = silent_store();
        let outcomes = [
            ("create", objects.create("a.csv").await.map(drop)),
            ("size", objects.size("a.csv").await.map(drop)),
            ("read", objects.read("a.csv", 0..1).await.map(drop)),
            ("delete", objects.delete("a.csv").await),
            ("list", objects.list("exports").next(1).await.map(drop)),
        ];
        for (call, outcome) in outcomes {
            assert!(matches!(outcome, Err(ObjectError::Deadline(_))), "{call}: {outcome:?}");
        }
    }

    #[test]
    fn unknown_scheme_or_option_is_refused() {
        let option = ("aws_regoin".to_owned(), "eu-central-1".to_owned());
        assert!(matches!(Objects::open("s3://files", [option]), Err(ObjectError::Address { .. })));
        assert!(matches!(Objects::open("ftp://host/x", []), Err(ObjectError::Address { .. })));
        assert!(matches!(Objects::open("not an address", []), Err(ObjectError::Address { .. })));
    }
}
