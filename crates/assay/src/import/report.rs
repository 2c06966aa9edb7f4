//! Results of an import: the summary, and a file of refused lines with reasons.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use assay_contracts::conversation::MAX_MESSAGES;
use serde::{Deserialize, Serialize};

use super::formats::{FIRST_KEPT, LAST_KEPT, Request};
use super::item::{Item, Position, Refusal};

/// Counts of conversations by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The service accepted them (202).
    pub accepted: u64,
    /// The service has them already (409).
    pub duplicate: u64,
    /// The service refused them, or they were not sent because they cannot be converted to a request.
    pub refused: u64,
    /// Accepted with fewer messages, because there were too many.
    #[serde(default)]
    pub shortened: u64,
    /// Messages left out of these.
    #[serde(default)]
    pub messages_left_out: u64,
    /// Notices about accepted conversations, except about left-out messages.
    #[serde(default)]
    pub notices: u64,
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
    /// Counts the changes that the conversion made to an accepted conversation. Returns the notices for the user.
    pub fn count_changes(&mut self, request: &Request) -> Vec<String> {
        let mut notices = request.notices.clone();
        self.notices += notices.len() as u64;
        if request.left_out > 0 {
            self.shortened += 1;
            self.messages_left_out += request.left_out as u64;
            notices.push(format!(
                "more than {MAX_MESSAGES} messages: the first {FIRST_KEPT} and the last {LAST_KEPT} were sent, {} left out",
                request.left_out
            ));
        }
        notices
    }

    /// Prints it on standard output.
    pub fn print(&self, elapsed: Duration, refused: Option<&Path>) -> Result<()> {
        let mut output = std::io::stdout();
        writeln!(output, "{self} in {:.1} s", elapsed.as_secs_f64())?;
        if self.shortened > 0 {
            writeln!(
                output,
                "{} had more than {MAX_MESSAGES} messages: the first {FIRST_KEPT} and the last {LAST_KEPT} of each were sent, \
                 {} messages were left out",
                self.shortened, self.messages_left_out
            )?;
        }
        if self.notices > 0 {
            writeln!(output, "notices about accepted conversations: {}, see standard error", self.notices)?;
        }
        if let Some(path) = refused {
            writeln!(output, "refused lines and reasons: {}", path.display())?;
        }
        Ok(())
    }
}

/// The file of refused lines. An earlier import's file is kept until the first line is refused or an import ends without
/// refusals.
pub struct Refusals {
    path: PathBuf,
    bytes: u64,
    file: Option<File>,
}

/// The beginning of every refused line.
const FIRST_MEMBER: &[u8] = b"{\"line\":";

#[derive(Serialize)]
struct RefusedLine<'a> {
    line: u64,
    /// Number within a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<u64>,
    #[serde(flatten)]
    refusal: &'a Refusal,
    /// Invalid UTF-8 is replaced; `line` leads to the original.
    body: std::borrow::Cow<'a, str>,
}

impl Refusals {
    /// The file is opened at the first refusal, and written after its first `bytes` bytes, which this import has written before.
    pub fn resume(path: &Path, bytes: u64) -> Self {
        Self { path: path.to_owned(), bytes, file: None }
    }

    /// Bytes written by this import.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn write(&mut self, item: &Item, refusal: &Refusal) -> Result<()> {
        let Position { line, item: in_page } = item.position;
        let body = String::from_utf8_lossy(&item.original);
        let refused = RefusedLine { line, item: (in_page > 0).then_some(in_page), refusal, body };
        let mut text = serde_json::to_string(&refused)?;
        text.push('\n');
        let path = self.path.clone();
        self.file()?
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Syncs the file, or removes an old one when this import refused nothing.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.sync_all().with_context(|| format!("cannot write {}", self.path.display())),
            None if self.bytes == 0 && self.path.is_file() => std::fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display())),
            None => Ok(()),
        }
    }

    fn file(&mut self) -> Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.open_truncated().with_context(|| format!("cannot write {}", self.path.display()))?,
        };
        Ok(self.file.insert(file))
    }

    /// Removes the lines after the checkpoint: their conversations are sent, and refused, again.
    fn open_truncated(&mut self) -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?;
        let metadata = file.metadata()?;
        // A device such as /dev/null has no length.
        if metadata.is_file() {
            // Shorter when the file was moved, or another one is named, since the interruption.
            self.bytes = self.bytes.min(metadata.len());
            file.set_len(self.bytes)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok(file)
    }
}

/// Fails when the file of refused lines would replace the input, or a file that no import has written.
pub fn ensure_replaceable(refused: &Path, input: &Path) -> Result<()> {
    let is_input = matches!((refused.canonicalize(), input.canonicalize()), (Ok(refused), Ok(input)) if refused == input);
    let mut beginning = Vec::new();
    if refused.is_file() {
        File::open(refused)
            .and_then(|file| file.take(FIRST_MEMBER.len() as u64).read_to_end(&mut beginning))
            .with_context(|| format!("cannot read {}", refused.display()))?;
    }
    if is_input || !(beginning.is_empty() || beginning == FIRST_MEMBER) {
        bail!("{} is not a file of refused lines: name another one with --refused", refused.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_refused_lines_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let input = file("input.jsonl", "{\"line\":1}\n");
        for (refused, is_replaceable) in [
            (file("empty.jsonl", ""), true),
            (file("earlier.jsonl", "{\"line\":7,\"status\":400}\n"), true),
            (folder.path().join("absent.jsonl"), true),
            (PathBuf::from("/dev/null"), true),
            (file("notes.txt", "To do"), false),
            (input.clone(), false),
        ] {
            assert_eq!(ensure_replaceable(&refused, &input).is_ok(), is_replaceable, "{}", refused.display());
        }
        Refusals::resume(Path::new("/dev/null"), 0).finish().unwrap();
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn moved_file_of_an_interrupted_import_leaves_no_hole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("refused.jsonl");
        let mut refusals = Refusals::resume(&path, 500);
        refusals.file().unwrap().write_all(b"{}\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
    }
}
