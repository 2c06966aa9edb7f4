//! Iterates over the conversations of the input, each converted to a request.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Result, ensure};

use super::checkpoint::Checkpoint;
use super::formats::{Converted, Format};
use super::item::{Item, Position};
use super::lines::Lines;

/// The conversations still to be sent; empty lines are skipped.
pub struct Items {
    lines: Lines,
    format: Format,
    /// Of the last line, not yet returned.
    waiting: VecDeque<Item>,
}

impl Items {
    /// Opens a file (`-`: standard input) and skips what is done already.
    pub fn open(file: &Path, format: Format, checkpoint: &Checkpoint) -> Result<Self> {
        let lines = if format.is_request_per_line() { Lines::open(file)? } else { Lines::open_json(file)? };
        let mut items = Self { lines, format, waiting: VecDeque::new() };
        let Some(last_done) = checkpoint.last_done() else { return Ok(items) };
        let mut unchanged = false;
        while let Some(item) = items.next().transpose()? {
            if item.position >= last_done {
                unchanged = item.position == last_done && item.fingerprint() == checkpoint.last_fingerprint;
                break;
            }
        }
        ensure!(
            unchanged,
            "{} was changed since the import was interrupted: remove {} to send all of it",
            file.display(),
            checkpoint.display_path()
        );
        Ok(items)
    }

    /// Size of the input in bytes, when it is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.lines.total_bytes()
    }
}

impl Iterator for Items {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.waiting.pop_front() {
                return Some(Ok(item));
            }
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            let converted = self.format.convert(line.body);
            let is_single = converted.len() == 1;
            for (index, Converted { original, request }) in converted.into_iter().enumerate() {
                let item = if is_single { 0 } else { index as u64 + 1 };
                let position = Position { line: line.number, item };
                self.waiting.push_back(Item { position, end: line.end, original, request });
            }
        }
    }
}
