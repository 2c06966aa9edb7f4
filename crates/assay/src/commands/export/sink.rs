//! Where the file goes: a file beside its name until it is whole and checked, or standard output.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Stdout, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use assay_platform::runtime::random_bytes;
use sha2::{Digest, Sha256};

use super::rows::RowCounter;

/// What was written.
pub struct Receipt {
    pub bytes: u64,
    pub rows: u64,
    /// SHA-256.
    pub digest: Vec<u8>,
}

/// A file that is being written.
pub struct Sink {
    place: Place,
    bytes: u64,
    hasher: Sha256,
    counter: RowCounter,
}

enum Place {
    Output(Stdout),
    File(PartialFile),
}

/// Refuses a name that is taken, or whose folder is not there.
pub fn check(out: &Path, force: bool) -> Result<()> {
    if out == Path::new("-") {
        return Ok(());
    }
    ensure!(!out.is_dir(), "{} is a folder: name a file in it", out.display());
    ensure!(force || !out.exists(), "{} exists: give --force to replace it, or another --out", out.display());
    let folder = folder_of(out);
    ensure!(folder.is_dir(), "there is no folder {}: make it first", folder.display());
    Ok(())
}

impl Sink {
    pub fn open(out: &Path, force: bool) -> Result<Self> {
        let place = match out == Path::new("-") {
            true => Place::Output(stdout()),
            false => Place::File(PartialFile::create(out, force)?),
        };
        Ok(Self { place, bytes: 0, hasher: Sha256::new(), counter: RowCounter::default() })
    }

    /// How much there is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn write(&mut self, content: &[u8]) -> Result<()> {
        match &mut self.place {
            Place::Output(output) => output.write_all(content)?,
            Place::File(file) => file.write(content)?,
        }
        self.hasher.update(content);
        self.counter.read(content);
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// Forgets what was written: the file is another one now.
    pub fn begin_anew(&mut self) -> Result<()> {
        match &mut self.place {
            Place::Output(_) if self.bytes > 0 => {
                bail!(
                    "the connection broke and cannot be resumed, and standard output cannot be taken back: start again"
                )
            }
            Place::Output(_) => {}
            Place::File(file) => file.empty()?,
        }
        self.bytes = 0;
        self.hasher = Sha256::new();
        self.counter = RowCounter::default();
        Ok(())
    }

    /// What was written, which nobody sees under its name yet.
    pub fn receipt(&self) -> Receipt {
        let digest = self.hasher.clone().finalize().to_vec();
        Receipt { bytes: self.bytes, rows: self.counter.rows(), digest }
    }

    /// Gives the file its name.
    pub fn publish(self) -> Result<()> {
        match self.place {
            Place::Output(mut output) => Ok(output.flush()?),
            Place::File(file) => file.publish(),
        }
    }
}

/// A file beside its later name; removed when it is dropped before it has it.
struct PartialFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    force: bool,
}

impl PartialFile {
    fn create(target: &Path, force: bool) -> Result<Self> {
        let random: [u8; 4] = random_bytes()?;
        let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = target.file_name().context("name a file to write to")?.to_string_lossy();
        let path = folder_of(target).join(format!(".{name}.{random}.part"));
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot write in {}", folder_of(target).display()))?;
        Ok(Self { file, path, target: target.to_owned(), force })
    }

    fn write(&mut self, content: &[u8]) -> Result<()> {
        self.file.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn empty(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        Ok(())
    }

    fn publish(self) -> Result<()> {
        let told = || format!("cannot write {}", self.target.display());
        self.file.sync_all().with_context(told)?;
        // Somebody else may have taken the name meanwhile.
        check(&self.target, self.force)?;
        std::fs::rename(&self.path, &self.target).with_context(told)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Gone already when it was published.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
