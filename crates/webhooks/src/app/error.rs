//! Why a request about webhooks is not done.

use assay_platform::auth::UnreadableSecret;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::RandomnessUnavailable;

use crate::domain::address::RefusedAddress;
use crate::domain::position::InvalidCursor;

/// Why a request is not done. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The organization has no such endpoint.
    #[error("no such webhook")]
    NotFound,
    /// The endpoint has no such message.
    #[error("no such delivery")]
    DeliveryNotFound,
    /// What the message said was erased.
    #[error("the message was erased")]
    Erased,
    /// The endpoint gets no messages at present.
    #[error("the webhook is disabled")]
    Disabled,
    /// Messages are not sent there.
    #[error(transparent)]
    Address(#[from] RefusedAddress),
    /// The organization has as many endpoints as it may have.
    #[error("the limit is {0}")]
    LimitReached(u32),
    /// The idempotency key belongs to another request.
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    /// The cursor is not ours.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// The secret cannot be made or read.
    #[error(transparent)]
    Secret(#[from] UnreadableSecret),
    /// There is no randomness for a secret.
    #[error(transparent)]
    Randomness(#[from] RandomnessUnavailable),
    /// The answer or the message cannot be written or read as JSON.
    #[error("JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
