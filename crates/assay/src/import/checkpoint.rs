//! How far a file is done, kept beside it until all of it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::random_bytes;
use serde::{Deserialize, Serialize};

use super::items::{Item, Place};
use super::report::Summary;

/// Conversations between two writes of the checkpoint. One that is sent twice is answered from its idempotency key.
const SAVE_EVERY: u64 = 100;

/// How far a file is done.
#[derive(Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Names this import, over all its interruptions: an import of the same file later is another one.
    pub run: String,
    /// SHA-256 of the address and the key that the lines went to: what was done for one organization was not done for
    /// another.
    #[serde(default)]
    pub destination: String,
    /// How the input is read, in the words of the command line; empty for request bodies. The same line read otherwise is
    /// another request.
    #[serde(default)]
    pub reading: String,
    /// Length of the file of refused lines, in bytes.
    #[serde(default)]
    pub refused_bytes: u64,
    /// Lines done: all of them up to this number.
    pub lines: u64,
    /// Conversations done of the last of these lines, when it holds a page of them.
    #[serde(default)]
    pub items: u64,
    /// Bytes done.
    pub bytes: u64,
    /// SHA-256 of the last line done, to notice a changed file.
    pub last_fingerprint: String,
    /// What became of them.
    pub summary: Summary,
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    unsaved: u64,
}

impl Checkpoint {
    /// Nothing done, and nothing written down.
    pub fn none() -> Result<Self> {
        let random: [u8; 8] = random_bytes()?;
        Ok(Self { run: random.iter().map(|byte| format!("{byte:02x}")).collect(), ..Self::default() })
    }

    /// What is known of an import of `file` to `destination`, read in this way. Standard input and pipes cannot be resumed.
    pub fn load(file: &Path, destination: &str, reading: &str) -> Result<Self> {
        let none = || {
            let (destination, reading) = (destination.to_owned(), reading.to_owned());
            Ok(Self { destination, reading, ..Self::none()? })
        };
        if !super::can_be_resumed(file) {
            return none();
        }
        let mut name = file.as_os_str().to_owned();
        name.push(".progress.json");
        let path = PathBuf::from(name);
        let checkpoint: Self = match fs::read(&path) {
            Ok(content) => serde_json::from_slice(&content).with_context(|| {
                format!("{} cannot be read: remove it to send all of the file", path.display())
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => none()?,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        // Nothing was done there yet: with a refused key, say.
        if checkpoint.lines == 0 {
            return Ok(Self { path: Some(path), ..none()? });
        }
        ensure!(
            checkpoint.destination == destination,
            "an import of {} to another address or with another key was interrupted: finish that one first, or remove {} \
             to send all of the file",
            file.display(),
            path.display()
        );
        ensure!(
            checkpoint.reading == reading,
            "the import of {} was begun with {}: go on with the same, or remove {} to send all of the file",
            file.display(),
            if checkpoint.reading.is_empty() { "--format assay" } else { &checkpoint.reading },
            path.display()
        );
        Ok(Self { path: Some(path), ..checkpoint })
    }

    /// The last conversation that is done; none when nothing is.
    pub fn place_done(&self) -> Option<Place> {
        (self.lines > 0).then_some(Place { line: self.lines, item: self.items })
    }

    /// Where it is written down.
    pub fn place(&self) -> String {
        self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Notes that everything up to this conversation is done.
    pub fn advance(&mut self, item: &Item) -> Result<()> {
        (self.lines, self.items) = (item.place.line, item.place.item);
        self.bytes = item.end;
        self.last_fingerprint = item.fingerprint();
        self.unsaved += 1;
        if self.unsaved >= SAVE_EVERY { self.save() } else { Ok(()) }
    }

    /// Writes it down, all or nothing.
    pub fn save(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let temporary = path.with_extension("json.new");
        fs::write(&temporary, serde_json::to_vec(self)?)
            .and_then(|()| fs::rename(&temporary, path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.unsaved = 0;
        Ok(())
    }

    /// The file is done.
    pub fn remove(&self) -> Result<()> {
        match &self.path {
            Some(path) if path.exists() => {
                fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}
