//! Deadlines of calls to the object store.

use std::future::Future;
use std::time::Duration;

use crate::runtime::timeout;

use super::ObjectError;

/// Deadlines, retries included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// Of calls that transfer no content.
    pub(super) response: Duration,
    /// Of uploading a part and of completing an upload, which may take minutes on S3.
    pub(super) transfer: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { response: Duration::from_secs(60), transfer: Duration::from_secs(5 * 60) }
    }
}

/// Awaits a call within its deadline.
pub(super) async fn with_deadline<T, F>(deadline: Duration, call: F) -> Result<T, ObjectError>
where
    F: Future<Output = object_store::Result<T>>,
{
    match timeout(deadline, call).await {
        Some(result) => Ok(result?),
        None => Err(ObjectError::Deadline(deadline)),
    }
}
