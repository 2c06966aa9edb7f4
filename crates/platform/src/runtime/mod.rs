//! Tasks, time, ids and randomness: every effect of the runtime that the rest of the code may use.

mod context;
mod home;
mod periodic;
mod readiness;
mod tasks;

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_contracts::time::Timestamp;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use uuid::Uuid;

pub use self::context::RequestContext;
pub use self::home::{Home, Started};
pub use self::periodic::periodically;
pub use self::readiness::{CheckOutcome, Readiness, ReadinessReport};
pub use self::tasks::{BoxError, Budgets, Phase, TaskFailure, Tasks};

/// The current moment.
pub fn now() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::saturating_from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}

/// A new id of the wanted kind: UUID version 7 (RFC 9562, section 5.7), ordered by time of creation.
pub fn new_id<T: From<Uuid>>() -> T {
    T::from(Uuid::now_v7())
}

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("the operating system has no randomness to give: {0}")]
pub struct RandomnessUnavailable(#[from] getrandom::Error);

/// `N` bytes from the operating system's cryptographic generator.
///
/// # Errors
/// When the operating system has none to give.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomnessUnavailable> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// The output of `work`, or `None` when it takes longer than `deadline`.
pub async fn within<F: Future>(deadline: Duration, work: F) -> Option<F::Output> {
    tokio::time::timeout(deadline, work).await.ok()
}

/// A blocking computation did not come to its end: it panicked, or the runtime is shutting down.
#[derive(Debug, thiserror::Error)]
#[error("blocking work was interrupted: {0}")]
pub struct Interrupted(#[from] tokio::task::JoinError);

/// Goes on with `work` whether the caller is polled or not, and gives it up when the caller is. For work that waits for
/// its turn: a turn that falls to a future which nobody polls (in a set of futures beside one that is awaited) would be
/// nobody's, and whoever is behind it would wait in vain.
///
/// # Errors
/// When the work panicked or the runtime is shutting down.
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub async fn driven<F>(work: F) -> Result<F::Output, Interrupted>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let span = tracing::Span::current();
    Ok(AbortOnDropHandle::new(tokio::task::spawn(work.instrument(span))).await?)
}

/// Runs blocking work (a database call, a file) away from the threads that serve requests.
///
/// # Errors
/// When the work panicked or the runtime is shutting down.
#[allow(clippy::disallowed_methods, reason = "the one place that may")]
pub async fn blocking<T, F>(work: F) -> Result<T, Interrupted>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let span = tracing::Span::current();
    Ok(tokio::task::spawn_blocking(move || span.in_scope(work)).await?)
}
