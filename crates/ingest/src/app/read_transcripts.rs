//! Reads transcripts for the scoring worker.

use assay_contracts::internal::{TicketReference, Transcript};
use assay_platform::db::DatabaseError;

use crate::store::Store;

/// At most so many tickets a call.
pub const MAX_TICKETS: usize = 100;

/// Why no transcripts were read.
#[derive(Debug, thiserror::Error)]
pub enum ReadTranscriptsError {
    /// More tickets than [`MAX_TICKETS`].
    #[error("at most {MAX_TICKETS} transcripts can be read at once")]
    TooMany,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// The transcripts of those of the tickets that exist.
///
/// # Errors
/// [`ReadTranscriptsError`].
pub async fn read_transcripts(
    store: &dyn Store,
    tickets: Vec<TicketReference>,
) -> Result<Vec<Transcript>, ReadTranscriptsError> {
    if tickets.len() > MAX_TICKETS {
        return Err(ReadTranscriptsError::TooMany);
    }
    Ok(store.read_transcripts(tickets).await?)
}
