//! Reads transcripts for the scoring worker.

use assay_contracts::internal::{MAX_TRANSCRIPTS, ReadTranscripts, StoredTranscript, Transcripts};
use assay_platform::db::DatabaseError;

use crate::store::{Store, transcript_bytes};

/// No further transcript is added once the response holds this many bytes.
pub(super) const TARGET_BYTES: usize = 8 * 1024 * 1024;

/// Transcripts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadTranscriptsError {
    /// More tickets than [`MAX_TRANSCRIPTS`].
    #[error("at most {MAX_TRANSCRIPTS} transcripts can be read at once")]
    TooMany,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Reads the transcripts of the tickets that exist until the response has [`TARGET_BYTES`]; the other tickets are `unread`.
pub async fn read_transcripts(
    store: &Store,
    wanted: ReadTranscripts,
) -> Result<Transcripts<StoredTranscript>, ReadTranscriptsError> {
    let ReadTranscripts { mut tickets, facts_only } = wanted;
    if tickets.len() > MAX_TRANSCRIPTS {
        return Err(ReadTranscriptsError::TooMany);
    }
    if facts_only {
        // Every ticket is listed without its transcript, in the wire field `unreadable`.
        let unreadable = store.read_ticket_facts(tickets).await?;
        return Ok(Transcripts { unreadable, ..Transcripts::default() });
    }
    let mut response = Transcripts::default();
    let mut bytes = 0;
    while !tickets.is_empty() && bytes < TARGET_BYTES {
        let found = store.read_transcripts(tickets, TARGET_BYTES - bytes).await?;
        bytes += found.transcripts.iter().map(transcript_bytes).sum::<usize>();
        response.transcripts.extend(found.transcripts);
        response.deleted.extend(found.deleted);
        response.unreadable.extend(found.unreadable);
        tickets = found.unread;
    }
    response.unread = tickets;
    Ok(response)
}
