//! What became of the lines: a summary for people, and the refused lines with their reasons in a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::client::Refusal;
use super::lines::Line;

/// What became of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// 202.
    pub accepted: u64,
    /// 409: imported before.
    pub duplicate: u64,
    /// Any other answer that a retry would not change.
    pub refused: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} accepted, {} duplicate, {} refused",
            self.accepted, self.duplicate, self.refused
        )
    }
}

impl Summary {
    /// Prints it on standard output.
    pub fn print(&self, elapsed: Duration, refused: Option<&Path>) -> Result<()> {
        let mut output = std::io::stdout();
        writeln!(output, "{self} in {:.1} s", elapsed.as_secs_f64())?;
        if let Some(path) = refused {
            writeln!(output, "refused lines and reasons: {}", path.display())?;
        }
        Ok(())
    }
}

/// The file of refused lines. What an earlier import left there stays until the first line is refused, or until an import
/// has ended without any.
pub struct Refusals {
    path: PathBuf,
    bytes: u64,
    file: Option<File>,
}

#[derive(Serialize)]
struct RefusedLine<'a> {
    line: u64,
    #[serde(flatten)]
    refusal: &'a Refusal,
    /// What is not UTF-8 is replaced: the line number says where the original is.
    body: std::borrow::Cow<'a, str>,
}

impl Refusals {
    /// Goes on behind the first `bytes` bytes of `path`, which are this import's own.
    pub fn open(path: &Path, bytes: u64) -> Self {
        Self { path: path.to_owned(), bytes, file: None }
    }

    /// Length of the file as far as it is this import's.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a line.
    pub fn write(&mut self, line: &Line, refusal: &Refusal) -> Result<()> {
        let refused = RefusedLine { line: line.number, refusal, body: String::from_utf8_lossy(&line.body) };
        let mut text = serde_json::to_string(&refused)?;
        text.push('\n');
        let path = self.path.clone();
        self.file()?
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// The import is done: makes sure that everything is in the file, or that there is none.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.sync_all().with_context(|| format!("cannot write {}", self.path.display())),
            None if self.bytes == 0 && self.path.exists() => std::fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display())),
            None => Ok(()),
        }
    }

    fn file(&mut self) -> Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.begin().with_context(|| format!("cannot write {}", self.path.display()))?,
        };
        Ok(self.file.insert(file))
    }

    /// Cuts off what is behind this import's own lines: they are sent, and refused, again.
    fn begin(&self) -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        file.set_len(self.bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(file)
    }
}
