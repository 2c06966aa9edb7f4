//! Progress of an import, stored next to the file until the import is complete.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::random_bytes;
use serde::{Deserialize, Serialize};

use super::item::{Item, Position};
use super::report::Summary;

/// Conversations between two writes of the checkpoint. Those sent again after a crash are deduplicated by their
/// idempotency keys.
const SAVE_EVERY: u64 = 100;

#[derive(Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Kept across interruptions. A later import of the same file gets a new one.
    #[serde(rename = "run")]
    pub import_id: String,
    /// SHA-256 of the gateway's address and the API key: progress in one organization does not count for another.
    #[serde(default)]
    pub destination: String,
    /// Format options as on the command line; empty for request bodies. With other options the same line is another
    /// request.
    #[serde(default, rename = "reading")]
    pub format_options: String,
    /// Length of the file of refused lines, in bytes.
    #[serde(default)]
    pub refused_bytes: u64,
    /// The last line with a conversation done, from 1; all lines before it are done. 0: nothing is done.
    #[serde(rename = "lines")]
    last_line: u64,
    /// Number of conversations done in that line, when it holds several.
    #[serde(default, rename = "items")]
    last_item: u64,
    /// Bytes of the input done.
    pub bytes: u64,
    /// SHA-256 of the last conversation done, to detect a changed file.
    pub last_fingerprint: String,
    pub summary: Summary,
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    unsaved_items: u64,
}

impl Checkpoint {
    /// No progress, and not stored.
    pub fn empty() -> Result<Self> {
        let random: [u8; 8] = random_bytes()?;
        Ok(Self { import_id: hex::encode(random), ..Self::default() })
    }

    /// Loads the progress of importing `file` to `destination` with these format options. Standard input and pipes cannot
    /// be resumed.
    pub fn load(file: &Path, destination: &str, format_options: &str) -> Result<Self> {
        let empty = || {
            let (destination, format_options) = (destination.to_owned(), format_options.to_owned());
            Ok(Self { destination, format_options, ..Self::empty()? })
        };
        if !super::is_resumable(file) {
            return empty();
        }
        let path = super::sibling_path(file, "progress.json");
        let checkpoint: Self = match fs::read(&path) {
            Ok(content) => serde_json::from_slice(&content).with_context(|| {
                format!("{} cannot be read: remove it to send all of the file", path.display())
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => empty()?,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let is_same_import =
            checkpoint.destination == destination && checkpoint.format_options == format_options;
        // No progress yet, for example because the key was refused. The same import keeps its id: after a crash before the
        // first write of progress its first conversations are sent again, and keep their idempotency keys.
        if checkpoint.last_done().is_none() && !is_same_import {
            return Ok(Self { path: Some(path), ..empty()? });
        }
        ensure!(
            checkpoint.destination == destination,
            "an import of {} to another address or with another key was interrupted: finish that one first, or remove {} \
             to send all of the file",
            file.display(),
            path.display()
        );
        ensure!(
            checkpoint.format_options == format_options,
            "the import of {} was begun with {}: go on with the same, or remove {} to send all of the file",
            file.display(),
            if checkpoint.format_options.is_empty() { "--format assay" } else { &checkpoint.format_options },
            path.display()
        );
        Ok(Self { path: Some(path), ..checkpoint })
    }

    /// Position of the last conversation done.
    pub fn last_done(&self) -> Option<Position> {
        (self.last_line > 0).then_some(Position { line: self.last_line, item: self.last_item })
    }

    /// Path of the checkpoint, for messages.
    pub fn display_path(&self) -> String {
        self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Records that everything up to this conversation is done.
    pub fn advance(&mut self, item: &Item) -> Result<()> {
        (self.last_line, self.last_item) = (item.position.line, item.position.item);
        self.bytes = item.end;
        self.last_fingerprint = item.fingerprint();
        self.unsaved_items += 1;
        if self.unsaved_items >= SAVE_EVERY { self.save() } else { Ok(()) }
    }

    /// Atomically writes the checkpoint.
    pub fn save(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let temporary = path.with_extension("json.new");
        fs::write(&temporary, serde_json::to_vec(self)?)
            .and_then(|()| fs::rename(&temporary, path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.unsaved_items = 0;
        Ok(())
    }

    /// Removes the checkpoint: the import is complete.
    pub fn remove(&self) -> Result<()> {
        match &self.path {
            Some(path) if path.exists() => {
                fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_without_progress_keeps_its_id_for_the_same_destination() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conversations.jsonl");
        fs::write(&file, "").unwrap();
        let mut begun = Checkpoint::load(&file, "destination", "").unwrap();
        begun.save().unwrap();
        let id = |destination, options| Checkpoint::load(&file, destination, options).unwrap().import_id;
        assert_eq!(id("destination", ""), begun.import_id);
        assert_ne!(id("another", ""), begun.import_id);
        assert_ne!(id("destination", "--format zendesk"), begun.import_id);
    }
}
