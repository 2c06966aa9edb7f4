//! Files of JSON lines, plain or compressed with gzip.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use assay_contracts::conversation::Conversation;
use flate2::read::MultiGzDecoder;

/// Conversations or labels could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be read or decompressed.
    #[error("cannot read {path}: {cause}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        cause: std::io::Error,
    },
    /// A line is invalid.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Reason, with the field.
        reason: String,
    },
    /// A part of a corpus has no rated conversations.
    #[error("{path} has no rated conversations in the part `{part}`: choose another part (train, dev, test)")]
    NothingRated {
        /// Folder of the corpus.
        path: PathBuf,
        /// Name of the part.
        part: String,
    },
}

/// The bytes of a file, decompressed when its name ends in `.gz`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let failed = |cause| DataError::File { path: path.to_owned(), cause };
    let bytes = fs::read(path).map_err(failed)?;
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(bytes);
    }
    let mut decompressed = Vec::new();
    MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut decompressed).map_err(failed)?;
    Ok(decompressed)
}

/// The lines that are not empty, with their numbers from 1.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let numbered = bytes.split(|byte| *byte == b'\n').enumerate();
    numbered.map(|(index, line)| (index + 1, line.trim_ascii())).filter(|(_, line)| !line.is_empty())
}

/// The conversations of a file with one request body per line, in order.
pub(crate) fn parse_conversations(path: &Path, bytes: &[u8]) -> Result<Vec<Conversation>, DataError> {
    lines(bytes)
        .map(|(line, body)| {
            Conversation::parse(body).map_err(|error| DataError::Line {
                path: path.to_owned(),
                line,
                reason: error.to_string(),
            })
        })
        .collect()
}
