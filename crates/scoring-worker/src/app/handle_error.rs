//! Why an event could not be handled this time.

use assay_messaging::EncodeError;
use assay_platform::db::DatabaseError;

use super::new_evaluation::UnwritableEvaluation;

/// What went wrong with events that need nothing but the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The event that follows cannot be encoded.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// The evaluation that follows cannot be written.
    #[error(transparent)]
    Evaluation(#[from] UnwritableEvaluation),
}

impl HandleError {
    /// Whether the same may succeed later without anybody mending anything.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}
