//! How far a file is done, kept beside it until all of it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::random_bytes;
use serde::{Deserialize, Serialize};

use super::lines::Line;
use super::report::Summary;

/// Lines between two writes of the checkpoint. A line that is sent twice is answered from its idempotency key.
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
    /// Length of the file of refused lines, in bytes.
    #[serde(default)]
    pub refused_bytes: u64,
    /// Lines done: all of them up to this number.
    pub lines: u64,
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

    /// What is known of an import of `file` to `destination`. Standard input cannot be resumed.
    pub fn load(file: &Path, destination: &str) -> Result<Self> {
        let none = || Ok(Self { destination: destination.to_owned(), ..Self::none()? });
        if file == Path::new("-") {
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
        Ok(Self { path: Some(path), ..checkpoint })
    }

    /// Where it is written down.
    pub fn place(&self) -> String {
        self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Notes that everything up to this line is done.
    pub fn advance(&mut self, line: &Line) -> Result<()> {
        self.lines = line.number;
        self.bytes = line.end;
        self.last_fingerprint = line.fingerprint();
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
