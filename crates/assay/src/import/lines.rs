//! The lines of the input file.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::checkpoint::Checkpoint;

/// One request body.
pub struct Line {
    /// Number in the file, from 1.
    pub number: u64,
    /// Bytes of the file up to and including this line.
    pub end: u64,
    /// The body, whatever it is: the service says what is wrong with it.
    pub body: Vec<u8>,
}

impl Line {
    /// SHA-256 of the body, lower-case hexadecimal.
    pub fn fingerprint(&self) -> String {
        Sha256::digest(&self.body).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The lines that are still to be sent; empty ones are passed over.
pub struct Lines {
    input: Box<dyn BufRead + Send>,
    total: Option<u64>,
    number: u64,
    end: u64,
}

impl Lines {
    /// Opens a file (`-`: standard input) behind what `done` says is done.
    pub fn open(file: &Path, done: &Checkpoint) -> Result<Self> {
        let mut lines = if file == Path::new("-") {
            Self { input: Box::new(BufReader::new(stdin())), total: None, number: 0, end: 0 }
        } else {
            let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
            let total = opened.metadata().ok().map(|metadata| metadata.len());
            Self { input: Box::new(BufReader::new(opened)), total, number: 0, end: 0 }
        };
        while lines.number < done.lines {
            let line = lines.read()?;
            let is_last = lines.number >= done.lines;
            let unchanged = match &line {
                Some(line) => !is_last || line.fingerprint() == done.last_fingerprint,
                None => false,
            };
            ensure!(
                unchanged,
                "{} was changed since the import was interrupted: remove {} to send all of it",
                file.display(),
                done.place()
            );
        }
        Ok(lines)
    }

    /// Size of the input, when it is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total
    }

    fn read(&mut self) -> Result<Option<Line>> {
        let mut body = Vec::new();
        let bytes = self
            .input
            .read_until(b'\n', &mut body)
            .with_context(|| format!("cannot read line {}", self.number + 1))?;
        if bytes == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.end += bytes as u64;
        while matches!(body.last(), Some(b'\n' | b'\r')) {
            body.pop();
        }
        Ok(Some(Line { number: self.number, end: self.end, body }))
    }
}

impl Iterator for Lines {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read() {
                Ok(Some(line)) if line.body.trim_ascii().is_empty() => {}
                other => return other.transpose(),
            }
        }
    }
}
