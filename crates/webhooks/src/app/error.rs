//! The error type of the requests about webhooks.

use std::time::Duration;

use assay_contracts::json::JsonFault;
use assay_platform::auth::SecretEncryptionError;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::RandomnessUnavailable;
use assay_platform::web::cursor::InvalidCursor;

use crate::domain::address::RefusedAddress;

/// Errors of the requests about webhooks; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("no such webhook")]
    NotFound,
    #[error("no such delivery")]
    DeliveryNotFound,
    #[error("the message was erased")]
    Erased,
    #[error("the webhook is disabled")]
    Disabled,
    #[error(transparent)]
    Address(#[from] RefusedAddress),
    #[error("{per_minute} messages may be requested in a minute")]
    TooManyRequested { per_minute: u32, wait: Duration },
    #[error("the limit is {0}")]
    LimitReached(u32),
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    #[error(transparent)]
    Secret(#[from] SecretEncryptionError),
    #[error(transparent)]
    Randomness(#[from] RandomnessUnavailable),
    /// A response or a message cannot be written or read as JSON.
    #[error("{}", JsonFault::of(.0))]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
