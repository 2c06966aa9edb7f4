//! Destination of the download: standard output, or a partial file next to its final name.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Stdout, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use assay_platform::runtime::random_bytes;
use sha2::{Digest, Sha256};

use super::rows::RowCounter;

/// What was downloaded.
pub struct WrittenFile {
    pub bytes: u64,
    pub rows: u64,
    /// SHA-256.
    pub digest: Vec<u8>,
}

pub struct Sink {
    target: Target,
    bytes: u64,
    hasher: Sha256,
    counter: RowCounter,
}

enum Target {
    Output(Stdout),
    File(PartialFile),
}

/// Fails when the file exists (without `force`) or its folder does not.
pub fn ensure_writable(out: &Path, force: bool) -> Result<()> {
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
        let target = match out == Path::new("-") {
            true => Target::Output(stdout()),
            false => Target::File(PartialFile::create(out, force)?),
        };
        Ok(Self { target, bytes: 0, hasher: Sha256::new(), counter: RowCounter::default() })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn write(&mut self, content: &[u8]) -> Result<()> {
        match &mut self.target {
            Target::Output(output) => output.write_all(content)?,
            Target::File(file) => file.write(content)?,
        }
        self.hasher.update(content);
        self.counter.read(content);
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// Discards what was written, because the file has changed.
    pub fn restart(&mut self) -> Result<()> {
        match &mut self.target {
            Target::Output(_) if self.bytes > 0 => {
                bail!(
                    "the connection broke and cannot be resumed, and standard output cannot be taken back: start again"
                )
            }
            Target::Output(_) => {}
            Target::File(file) => file.truncate()?,
        }
        self.bytes = 0;
        self.hasher = Sha256::new();
        self.counter = RowCounter::default();
        Ok(())
    }

    pub fn written_file(&self) -> WrittenFile {
        let digest = self.hasher.clone().finalize().to_vec();
        WrittenFile { bytes: self.bytes, rows: self.counter.rows(), digest }
    }

    /// Moves the file to its final name.
    pub fn publish(self) -> Result<()> {
        match self.target {
            Target::Output(mut output) => Ok(output.flush()?),
            Target::File(file) => file.publish(),
        }
    }
}

/// A temporary file next to its final name; removed when dropped unpublished.
struct PartialFile {
    file: File,
    path: PathBuf,
    final_path: PathBuf,
    force: bool,
}

impl PartialFile {
    fn create(final_path: &Path, force: bool) -> Result<Self> {
        let random = hex::encode(random_bytes::<4>()?);
        let name = final_path.file_name().context("name a file to write to")?.to_string_lossy();
        let path = folder_of(final_path).join(format!(".{name}.{random}.part"));
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot write in {}", folder_of(final_path).display()))?;
        Ok(Self { file, path, final_path: final_path.to_owned(), force })
    }

    fn write(&mut self, content: &[u8]) -> Result<()> {
        self.file.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn truncate(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        Ok(())
    }

    fn publish(self) -> Result<()> {
        let context = || format!("cannot write {}", self.final_path.display());
        self.file.sync_all().with_context(context)?;
        // Another process may have created the file meanwhile.
        ensure_writable(&self.final_path, self.force)?;
        std::fs::rename(&self.path, &self.final_path).with_context(context)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // A published file has already been moved.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
