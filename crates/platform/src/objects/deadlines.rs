//! A store that is away must not hold anybody for ever.

use std::future::Future;
use std::time::Duration;

use crate::runtime::within;

use super::ObjectError;

/// How long the store may take, repetitions of failed requests included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// For what moves no content.
    pub(super) answer: Duration,
    /// For sending a part and for publishing a file, which S3 says may take minutes.
    pub(super) transfer: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { answer: Duration::from_secs(60), transfer: Duration::from_secs(5 * 60) }
    }
}

/// What the store answers, or that it did not in time.
pub(super) async fn in_time<T, F>(deadline: Duration, call: F) -> Result<T, ObjectError>
where
    F: Future<Output = object_store::Result<T>>,
{
    match within(deadline, call).await {
        Some(answer) => Ok(answer?),
        None => Err(ObjectError::Deadline(deadline)),
    }
}
