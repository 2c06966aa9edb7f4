//! The way of lines from a thread that reads the database to a task that writes a file: in chunks, through a bounded
//! channel, so that memory stays constant whatever the number of rows.

use assay_contracts::export::ExportKind;
use assay_platform::db::DatabaseError;
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::domain::csv::{self, UnknownColumns};

/// Lines are gathered to chunks of this size; a line that is longer is a chunk of its own.
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks under way at most: enough to read on while a part of the file is stored.
const CHUNKS: usize = 4;

/// The lines of a file cannot be read to their end.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A line was rendered by a newer release: a worker of that release must take over.
    #[error(transparent)]
    Columns(#[from] UnknownColumns),
    /// Nobody receives the lines any more.
    #[error("the receiver of the lines is gone")]
    Abandoned,
}

impl From<diesel::result::Error> for SnapshotError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Where a snapshot sends its lines. For threads that may block.
pub struct LineSink {
    sender: Sender<Bytes>,
    chunk: Vec<u8>,
    rows: u64,
    /// The version of the columns that the last line had, and what completes such a line.
    completion: (i16, String),
}

/// A channel for the lines of one file; the receiver gets them in chunks, complete and with their ends.
pub fn line_channel() -> (LineSink, Receiver<Bytes>) {
    let (sender, receiver) = channel(CHUNKS);
    let completion = (csv::COLUMNS_VERSION, csv::LINE_END.to_owned());
    (LineSink { sender, chunk: Vec::with_capacity(CHUNK_BYTES), rows: 0, completion }, receiver)
}

impl LineSink {
    /// Takes a line that was rendered with columns of `version`; waits while the receiver is behind.
    ///
    /// # Errors
    /// When the version is newer than this release or the receiver is gone.
    pub fn push(&mut self, kind: ExportKind, version: i16, line: &[u8]) -> Result<(), SnapshotError> {
        if self.completion.0 != version {
            self.completion = (version, csv::completion(kind, version)?);
        }
        let bytes = line.len() + self.completion.1.len();
        // A chunk that has to grow is copied, and takes twice the memory while it is under way.
        if !self.chunk.is_empty() && self.chunk.len() + bytes > CHUNK_BYTES {
            self.send()?;
        }
        self.chunk.extend_from_slice(line);
        self.chunk.extend_from_slice(self.completion.1.as_bytes());
        self.rows += 1;
        Ok(())
    }

    /// Sends what is left; answers how many lines there were.
    ///
    /// # Errors
    /// When the receiver is gone.
    pub fn finish(mut self) -> Result<u64, SnapshotError> {
        if !self.chunk.is_empty() {
            self.send()?;
        }
        Ok(self.rows)
    }

    fn send(&mut self) -> Result<(), SnapshotError> {
        // A line may be longer than a chunk: what is kept for the next one does not grow with it.
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        self.sender.blocking_send(chunk.into()).map_err(|_| SnapshotError::Abandoned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_full_before_it_would_have_to_grow() {
        let (mut sink, mut chunks) = line_channel();
        let lengths = [CHUNK_BYTES / 2, CHUNK_BYTES / 2 - 100, 2 * CHUNK_BYTES, 7];
        let writer = std::thread::spawn(move || {
            for length in lengths {
                sink.push(ExportKind::Axis, csv::COLUMNS_VERSION, &vec![b'x'; length])?;
            }
            sink.finish()
        });
        let received: Vec<usize> =
            std::iter::from_fn(|| chunks.blocking_recv()).map(|chunk| chunk.len()).collect();
        // With the ends of the lines: two that fit together, one that is longer than a chunk, and the rest.
        assert_eq!(received, [CHUNK_BYTES - 100 + 4, 2 * CHUNK_BYTES + 2, 7 + 2]);
        assert_eq!(writer.join().unwrap().unwrap(), 4);
    }
}
