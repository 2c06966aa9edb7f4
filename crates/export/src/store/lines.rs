//! Streams lines from the thread that reads the database to the task that writes the file: in chunks, through a bounded
//! channel, so that memory is constant for any number of rows.

use assay_contracts::export::ExportKind;
use assay_platform::db::DatabaseError;
use bytes::Bytes;
use diesel::sql_types::{SmallInt, Text};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::FileSelection;
use super::conditions::{Conditions, Dialect, LINES};
use crate::domain::csv::{self, UnknownColumns};

/// Chunk size. A longer line is a chunk by itself.
const CHUNK_BYTES: usize = 256 * 1024;
/// Capacity of the channel, in chunks: reading continues while a part of the file is uploaded.
const CHUNKS: usize = 4;

/// Failure of a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A line of a newer release: a worker of that release must write the file.
    #[error(transparent)]
    Columns(#[from] UnknownColumns),
    /// The receiver was dropped.
    #[error("the receiver of the lines was dropped")]
    Abandoned,
}

impl From<diesel::result::Error> for SnapshotError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The statement for the lines of a selection in the order of a file, with the texts of its placeholders. It does not read facts when
/// a period is the only filter.
pub(super) fn select_lines(selection: &FileSelection, dialect: Dialect) -> (String, Vec<String>) {
    let line = match selection.kind {
        ExportKind::Axis => "axis_line",
        ExportKind::ResolutionAudit => "audit_line",
    };
    let (filters, organization) = (&selection.filters, selection.organization_id);
    let (Conditions { sql, bindings }, tables, order) = if filters.is_period_only() {
        let order = "lines.conversation_started_at, lines.ticket_id";
        (Conditions::of_period(organization, filters, LINES), "evaluation_rows lines", order)
    } else {
        let tables = "evaluation_facts facts JOIN evaluation_rows lines ON lines.ticket_id = facts.ticket_id";
        (Conditions::of(organization, filters, dialect), tables, "facts.started_at, facts.ticket_id")
    };
    let statement = format!(
        "SELECT lines.columns_version, lines.{line} AS line FROM {tables} WHERE {sql} ORDER BY {order}"
    );
    (statement, bindings)
}

/// A row of [`select_lines`].
#[derive(diesel::QueryableByName)]
pub(super) struct SelectedLine {
    #[diesel(sql_type = SmallInt)]
    pub(super) columns_version: i16,
    #[diesel(sql_type = Text)]
    pub(super) line: String,
}

/// The sending half. Its methods block.
pub struct LineSink {
    sender: Sender<Bytes>,
    chunk: Vec<u8>,
    rows: u64,
    /// Column version of the last line.
    columns_version: i16,
    /// What ends a line of that version: empty cells and the terminator.
    line_end: String,
}

/// A channel for the lines of one file. The receiver gets chunks of complete, terminated lines.
pub fn line_channel() -> (LineSink, Receiver<Bytes>) {
    let (sender, receiver) = channel(CHUNKS);
    let (columns_version, line_end) = (csv::COLUMNS_VERSION, csv::LINE_END.to_owned());
    let chunk = Vec::with_capacity(CHUNK_BYTES);
    (LineSink { sender, chunk, rows: 0, columns_version, line_end }, receiver)
}

impl LineSink {
    /// Appends a line with columns of `version`. Blocks while the channel is full.
    ///
    /// # Errors
    /// When the version is newer than this release, or the receiver was dropped.
    pub fn push(&mut self, kind: ExportKind, version: i16, line: &str) -> Result<(), SnapshotError> {
        if self.columns_version != version {
            self.line_end = csv::padding_and_line_end(kind, version)?;
            self.columns_version = version;
        }
        let bytes = line.len() + self.line_end.len();
        // Growing a chunk would copy it and double its memory.
        if !self.chunk.is_empty() && self.chunk.len() + bytes > CHUNK_BYTES {
            self.send()?;
        }
        self.chunk.extend_from_slice(line.as_bytes());
        self.chunk.extend_from_slice(self.line_end.as_bytes());
        self.rows += 1;
        Ok(())
    }

    /// Sends the last chunk; returns the number of lines.
    ///
    /// # Errors
    /// When the receiver was dropped.
    pub fn finish(mut self) -> Result<u64, SnapshotError> {
        if !self.chunk.is_empty() {
            self.send()?;
        }
        Ok(self.rows)
    }

    fn send(&mut self) -> Result<(), SnapshotError> {
        // A fresh buffer: a chunk grown by a long line is not reused.
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        self.sender.blocking_send(chunk.into()).map_err(|_| SnapshotError::Abandoned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_sent_before_they_would_grow() {
        let (mut sink, mut chunks) = line_channel();
        let lengths = [CHUNK_BYTES / 2, CHUNK_BYTES / 2 - 100, 2 * CHUNK_BYTES, 7];
        let writer = std::thread::spawn(move || {
            for length in lengths {
                sink.push(ExportKind::Axis, csv::COLUMNS_VERSION, &"x".repeat(length))?;
            }
            sink.finish()
        });
        let received: Vec<usize> =
            std::iter::from_fn(|| chunks.blocking_recv()).map(|chunk| chunk.len()).collect();
        // With terminators: two lines that fit, one longer than a chunk, and the rest.
        assert_eq!(received, [CHUNK_BYTES - 100 + 4, 2 * CHUNK_BYTES + 2, 7 + 2]);
        assert_eq!(writer.join().unwrap().unwrap(), 4);
    }
}
