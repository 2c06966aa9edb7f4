//! Lists the files of a store in portions. On a disk that includes the files of unfinished uploads: `object_store` writes an
//! upload to `KEY#N`, renames it at the end, and never lists such a file, which may remain after a crash. Unfinished uploads to
//! S3 are not listed: a lifecycle rule of the bucket removes them.

use std::collections::VecDeque;
use std::fs::{DirEntry, read_dir};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assay_contracts::time::Timestamp;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::ObjectMeta;

use super::ObjectError;
use super::deadlines::Deadlines;
use crate::runtime::{blocking, timeout};

/// A file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The key, or the key that an unfinished upload was for.
    pub key: String,
    /// Last change, by the clock of the store.
    pub modified: Timestamp,
    /// The file of an unfinished upload.
    pub(super) unfinished: Option<PathBuf>,
}

impl ListedObject {
    /// Whether this is the file of an upload that is still running, or whose process has died.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }
}

/// The files of a store, in no particular order. A file that is created or deleted meanwhile may be listed or not.
pub struct Listing {
    source: Source,
    deadlines: Deadlines,
}

enum Source {
    Disk(FolderWalk),
    Store(BoxStream<'static, object_store::Result<ObjectMeta>>),
}

impl Listing {
    pub(super) fn of_folder(root: &Path, prefix: &str, deadlines: Deadlines) -> Self {
        Self { source: Source::Disk(FolderWalk::new(root, prefix)), deadlines }
    }

    pub(super) fn of_store(
        listed: BoxStream<'static, object_store::Result<ObjectMeta>>,
        deadlines: Deadlines,
    ) -> Self {
        // Callers go on until a portion is empty; a stream that has ended may panic when it is polled again.
        Self { source: Source::Store(listed.fuse().boxed()), deadlines }
    }

    /// The next files, at most `limit`; none at the end. After an error the listing has ended.
    ///
    /// # Errors
    /// When the store refuses or does not respond in time.
    pub async fn next(&mut self, limit: usize) -> Result<Vec<ListedObject>, ObjectError> {
        match &mut self.source {
            Source::Disk(walk) => {
                let mut walked = std::mem::take(walk);
                let step = move || walked.next(limit).map(|found| (walked, found));
                let (rest, found) = blocking(step).await.map_err(disk_failed)?.map_err(disk_failed)?;
                *walk = rest;
                Ok(found)
            }
            Source::Store(listed) => {
                let mut found = Vec::new();
                while found.len() < limit {
                    let Some(next) = timeout(self.deadlines.response, listed.next()).await else {
                        return Err(ObjectError::Deadline(self.deadlines.response));
                    };
                    let Some(object) = next else { break };
                    found.push(from_store(object?));
                }
                Ok(found)
            }
        }
    }
}

/// Removes the file of an unfinished upload.
pub(super) async fn remove_unfinished(file: PathBuf) -> Result<(), ObjectError> {
    let removed = blocking(move || std::fs::remove_file(file)).await.map_err(disk_failed)?;
    unless_missing(removed).map(drop).map_err(disk_failed)
}

/// Removes the empty folders below `folder` that were last changed before `before`.
pub(super) async fn remove_empty_folders(folder: PathBuf, before: Timestamp) -> Result<(), ObjectError> {
    blocking(move || remove_empty_below(&folder, before)).await.map_err(disk_failed)?.map_err(disk_failed)
}

fn remove_empty_below(folder: &Path, before: Timestamp) -> std::io::Result<()> {
    let Some(entries) = unless_missing(read_dir(folder))? else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let Some(metadata) = unless_missing(entry.metadata())? else { continue };
        if !metadata.is_dir() {
            continue;
        }
        let path = entry.path();
        remove_empty_below(&path, before)?;
        // Its time was read before the call above, which changes it by removing a folder: so nested empty folders are removed in
        // one run.
        if timestamp(metadata.modified()?) < before {
            match std::fs::remove_dir(&path) {
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                removed => drop(unless_missing(removed)?),
            }
        }
    }
    Ok(())
}

/// `None` for a file or folder that does not exist: it was removed meanwhile, or is not created yet.
fn unless_missing<T>(result: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

fn from_store(object: ObjectMeta) -> ListedObject {
    let modified = Timestamp::saturating_from_millis(object.last_modified.timestamp_millis());
    ListedObject { key: object.location.to_string(), modified, unfinished: None }
}

fn disk_failed(error: impl std::error::Error + Send + Sync + 'static) -> ObjectError {
    ObjectError::Store(object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(error) })
}

/// A walk through the folders of a store on disk.
#[derive(Default)]
struct FolderWalk {
    root: PathBuf,
    /// Folders that are still to be read.
    folders: VecDeque<PathBuf>,
    /// Files that were read and not yet returned.
    files: Vec<ListedObject>,
}

impl FolderWalk {
    fn new(root: &Path, prefix: &str) -> Self {
        Self { root: root.to_owned(), folders: VecDeque::from([root.join(prefix)]), files: Vec::new() }
    }

    fn next(&mut self, limit: usize) -> std::io::Result<Vec<ListedObject>> {
        while self.files.len() < limit {
            let Some(folder) = self.folders.pop_back() else { break };
            let entries = unless_missing(read_dir(&folder))?;
            entries.into_iter().flatten().try_for_each(|entry| self.add(&entry?))?;
        }
        let rest = self.files.split_off(limit.min(self.files.len()));
        Ok(std::mem::replace(&mut self.files, rest))
    }

    fn add(&mut self, entry: &DirEntry) -> std::io::Result<()> {
        let path = entry.path();
        let Some(metadata) = unless_missing(entry.metadata())? else { return Ok(()) };
        if metadata.is_dir() {
            self.folders.push_back(path);
        } else if metadata.is_file()
            && let Some(text) = path.strip_prefix(&self.root).ok().and_then(Path::to_str)
        {
            let (key, is_unfinished) = match text.rsplit_once('#') {
                Some((key, number)) if is_upload_number(number) => (key, true),
                _ => (text, false),
            };
            let (key, modified) = (key.to_owned(), timestamp(metadata.modified()?));
            self.files.push(ListedObject { key, modified, unfinished: is_unfinished.then_some(path) });
        }
        Ok(())
    }
}

fn is_upload_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::saturating_from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
