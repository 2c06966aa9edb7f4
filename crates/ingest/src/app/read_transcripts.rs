//! Reads transcripts for the scoring worker.

use assay_contracts::internal::{MAX_TRANSCRIPTS, StoredTranscript, TicketReference, Transcripts};
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// Number of tickets per query.
const CHUNK: usize = 16;

/// No further chunk is read once the response holds this many bytes of messages.
const TARGET_BYTES: usize = 8 * 1024 * 1024;

/// Transcripts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadTranscriptsError {
    /// More tickets than [`MAX_TRANSCRIPTS`].
    #[error("at most {MAX_TRANSCRIPTS} transcripts can be read at once")]
    TooMany,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The transcripts of the tickets that exist, until the response is large enough; the rest is listed as unread.
pub async fn read_transcripts(
    store: &dyn Store,
    tickets: Vec<TicketReference>,
) -> Result<Transcripts<StoredTranscript>, ReadTranscriptsError> {
    if tickets.len() > MAX_TRANSCRIPTS {
        return Err(ReadTranscriptsError::TooMany);
    }
    let mut response = Transcripts::default();
    let mut bytes = 0;
    for chunk in tickets.chunks(CHUNK) {
        if bytes >= TARGET_BYTES {
            response.unread.extend_from_slice(chunk);
            continue;
        }
        let read = store.read_transcripts(chunk.to_vec()).await?;
        bytes += read.transcripts.iter().map(size).sum::<usize>();
        response.transcripts.extend(read.transcripts);
        response.deleted.extend(read.deleted);
        response.unreadable.extend(read.unreadable);
    }
    Ok(response)
}

fn size(transcript: &StoredTranscript) -> usize {
    transcript.conversation.messages.get().len()
}
