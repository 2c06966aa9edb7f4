//! Tasks, time, ids and randomness: what the code takes from the runtime and the operating system.

mod background_threads;
mod context;
mod erased;
mod locked;
mod periodic;
mod readiness;
mod runtime_handle;
mod tasks;

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_contracts::time::Timestamp;
use uuid::Uuid;

pub use self::background_threads::BackgroundThreads;
pub use self::context::RequestContext;
pub(crate) use self::erased::{Erased, restore};
pub use self::locked::LockExt;
pub use self::periodic::periodically;
pub use self::readiness::{CheckOutcome, Readiness, ReadinessReport};
pub use self::runtime_handle::RuntimeHandle;
pub use self::tasks::{BoxError, Phase, ShutdownBudgets, TaskFailure, TaskOutput, Tasks};

/// The current time.
pub fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::saturating_from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

/// A new id: UUID version 7 (RFC 9562, section 5.7), ordered by time of creation.
pub fn new_id<T: From<Uuid>>() -> T {
    T::from(Uuid::now_v7())
}

/// The operating system's random generator failed.
#[derive(Debug, thiserror::Error)]
#[error("the operating system has no randomness: {0}")]
pub struct RandomnessUnavailable(#[from] getrandom::Error);

/// `N` bytes from the operating system's cryptographic generator.
///
/// # Errors
/// When the generator fails.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomnessUnavailable> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// The output of `work`, or `None` after `deadline`.
pub async fn timeout<F: Future>(deadline: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(deadline, work).await.ok()
}

/// A task did not complete: it panicked, or the runtime is shutting down.
#[derive(Debug, thiserror::Error)]
#[error("work was interrupted: {0}")]
pub struct Interrupted(#[from] tokio::task::JoinError);

/// Runs `work` in a new task and waits for it; dropping the caller aborts the task. For work that waits for a
/// semaphore permit: a permit assigned to a future that is not polled (one of several in a set) would block all waiters
/// behind it.
///
/// # Errors
/// When the work panicked or the runtime is shutting down.
pub async fn spawn_and_wait<F>(work: F) -> Result<F::Output, Interrupted>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let work = async move { Box::new(work.await) as Erased };
    erased::spawn_and_wait(Box::pin(work)).await.map(restore)
}

/// Runs blocking work (a database call, a file) on the blocking thread pool.
///
/// # Errors
/// When the work panicked or the runtime is shutting down.
pub async fn blocking<T, F>(work: F) -> Result<T, Interrupted>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    erased::blocking(None, Box::new(move || Box::new(work()))).await.map(restore)
}
