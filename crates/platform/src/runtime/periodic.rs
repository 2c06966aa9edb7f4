//! Housekeeping: the same work again and again, until the process stops.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::BoxError;

/// Pause after work that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Does `work` now and then once every `interval` (but for `name`'s failures, which are logged and tried again sooner),
/// until `stop`. What it returns fits [`super::Tasks::spawn`].
///
/// # Errors
/// None: housekeeping that fails must not take the service down.
pub async fn periodically<F, Fut, E>(
    name: &'static str,
    interval: Duration,
    stop: CancellationToken,
    mut work: F,
) -> Result<(), BoxError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Display,
{
    loop {
        // Every kind of housekeeping can be interrupted and done again.
        let Some(done) = stop.run_until_cancelled(work()).await else { return Ok(()) };
        let pause = match done {
            Ok(()) => interval,
            Err(error) => {
                tracing::warn!(task = name, cause = %error, "housekeeping failed: it is tried again");
                interval.min(RETRY_PAUSE)
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return Ok(());
        }
    }
}
