//! Reads transcripts for the scoring worker.

use assay_contracts::internal::{
    MAX_TRANSCRIPTS, ReadTranscripts, StoredTranscript, Transcripts, UnreadableTranscript,
};
use assay_platform::db::DatabaseError;

use crate::store::{Store, StoredTranscripts, transcript_bytes};

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
        return Ok(without_transcripts(store.read_ticket_facts(tickets).await?));
    }
    let mut response = Transcripts::default();
    let mut bytes = 0;
    while !tickets.is_empty() && bytes < TARGET_BYTES {
        let StoredTranscripts { transcripts, deleted, unreadable, unread } =
            store.read_transcripts(tickets, TARGET_BYTES - bytes).await?;
        bytes += transcripts.iter().map(transcript_bytes).sum::<usize>();
        response.transcripts.extend(transcripts);
        response.deleted.extend(deleted);
        response.unreadable.extend(unreadable);
        tickets = unread;
    }
    response.unread = tickets;
    Ok(response)
}

/// Facts only: every ticket is listed without its transcript, in the wire field `unreadable`.
fn without_transcripts(tickets: Vec<UnreadableTranscript>) -> Transcripts<StoredTranscript> {
    Transcripts { unreadable: tickets, ..Transcripts::default() }
}
