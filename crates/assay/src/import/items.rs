//! What is to be sent: the conversations of the input, one by one, each made a request.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

use anyhow::{Result, ensure};
use sha2::{Digest, Sha256};

use super::checkpoint::Checkpoint;
use super::formats::{Converted, Format, Request};
use super::lines::Lines;

/// Where a conversation stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line that it begins in, or that its page begins in; from 1.
    pub line: u64,
    /// Its number in the page, from 1; 0 for one that has the line for itself.
    pub item: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            0 => write!(formatter, "{}", self.line),
            item => write!(formatter, "{}.{item}", self.line),
        }
    }
}

/// One conversation of the input.
pub struct Item {
    pub place: Place,
    /// Bytes of the input up to and including its line.
    pub end: u64,
    /// As it stands in the input.
    pub original: Vec<u8>,
    /// What is sent, or why it cannot be.
    pub request: Result<Request, String>,
}

impl Item {
    /// SHA-256 of the original, lower-case hexadecimal.
    pub fn fingerprint(&self) -> String {
        Sha256::digest(&self.original).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The conversations that are still to be sent; empty lines are passed over.
pub struct Items {
    lines: Lines,
    format: Format,
    ready: VecDeque<Item>,
}

impl Items {
    /// Opens a file (`-`: standard input) behind what `done` says is done.
    pub fn open(file: &Path, format: Format, done: &Checkpoint) -> Result<Self> {
        let lines = if format.is_a_request_a_line() { Lines::open(file)? } else { Lines::open_json(file)? };
        let mut items = Self { lines, format, ready: VecDeque::new() };
        let Some(last_done) = done.place_done() else { return Ok(items) };
        let mut unchanged = false;
        while let Some(item) = items.next().transpose()? {
            if item.place >= last_done {
                unchanged = item.place == last_done && item.fingerprint() == done.last_fingerprint;
                break;
            }
        }
        ensure!(
            unchanged,
            "{} was changed since the import was interrupted: remove {} to send all of it",
            file.display(),
            done.place()
        );
        Ok(items)
    }

    /// Size of the input, when it is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.lines.total_bytes()
    }
}

impl Iterator for Items {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            let converted = self.format.convert(line.body);
            let has_line_for_itself = converted.len() == 1;
            for (index, Converted { original, request }) in converted.into_iter().enumerate() {
                let item = if has_line_for_itself { 0 } else { index as u64 + 1 };
                let place = Place { line: line.number, item };
                self.ready.push_back(Item { place, end: line.end, original, request });
            }
        }
    }
}
