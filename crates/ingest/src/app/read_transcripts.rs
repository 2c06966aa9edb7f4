//! Reads transcripts for the scoring worker.

use assay_contracts::internal::{MAX_TRANSCRIPTS, StoredTranscript, TicketReference, Transcripts};
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// Tickets that are read together.
const PORTION: usize = 16;

/// No further portion is read when the texts of an answer have reached so many bytes.
const ENOUGH_BYTES: usize = 8 * 1024 * 1024;

/// Why no transcripts were read.
#[derive(Debug, thiserror::Error)]
pub enum ReadTranscriptsError {
    /// More tickets than [`MAX_TRANSCRIPTS`].
    #[error("at most {MAX_TRANSCRIPTS} transcripts can be read at once")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The transcripts of those of the tickets that exist, until the answer is large enough.
///
/// # Errors
/// [`ReadTranscriptsError`].
pub async fn read_transcripts(
    store: &dyn Store,
    tickets: Vec<TicketReference>,
) -> Result<Transcripts<StoredTranscript>, ReadTranscriptsError> {
    if tickets.len() > MAX_TRANSCRIPTS {
        return Err(ReadTranscriptsError::TooMany);
    }
    let mut answer = Transcripts::default();
    let mut bytes = 0;
    for portion in tickets.chunks(PORTION) {
        if bytes >= ENOUGH_BYTES {
            answer.unread.extend_from_slice(portion);
            continue;
        }
        let read = store.read_transcripts(portion.to_vec()).await?;
        bytes += read.transcripts.iter().map(size).sum::<usize>();
        answer.transcripts.extend(read.transcripts);
        answer.deleted.extend(read.deleted);
        answer.unreadable.extend(read.unreadable);
    }
    Ok(answer)
}

fn size(transcript: &StoredTranscript) -> usize {
    transcript.conversation.messages.get().len()
}
