//! Errors of event handlers that need only the database.

use assay_messaging::EncodeError;
use assay_platform::db::DatabaseError;

use super::new_evaluation::UnwritableEvaluation;

#[derive(Debug, thiserror::Error)]
pub(crate) enum HandleError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Event(#[from] EncodeError),
    #[error(transparent)]
    Evaluation(#[from] UnwritableEvaluation),
}

impl HandleError {
    /// Whether a retry may succeed without a repair.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}
