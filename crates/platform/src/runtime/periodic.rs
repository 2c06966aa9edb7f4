//! Periodic tasks, such as maintenance.

use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Phase, TaskOutput, Tasks};

/// Pause after work that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(30);

impl Tasks {
    /// Spawns a task that runs `work` as [`periodically`] does, each time with a clone of `state`.
    pub fn spawn_periodic<S, F, Fut>(
        &mut self,
        phase: Phase,
        name: &'static str,
        interval: Duration,
        state: S,
        work: F,
    ) where
        S: Clone + Send + 'static,
        F: Fn(S) -> Fut + Send + 'static,
        Fut: Future<Output: TaskOutput + Send> + Send + 'static,
    {
        self.spawn(phase, name, move |stop| periodically(name, interval, stop, move || work(state.clone())));
    }
}

/// Runs `work` at once and then every `interval` until `stop`. A failure is logged under `name` and retried sooner: it must
/// not take the service down.
pub async fn periodically<F, Fut>(
    name: &'static str,
    interval: Duration,
    stop: CancellationToken,
    mut work: F,
) where
    F: FnMut() -> Fut,
    Fut: Future<Output: TaskOutput>,
{
    loop {
        // Periodic work is safe to interrupt and to repeat.
        let Some(output) = stop.run_until_cancelled(work()).await else { return };
        let pause = match output.into_result() {
            Ok(()) => interval,
            Err(error) => {
                tracing::warn!(task = name, cause = %error, "periodic task failed and will be retried");
                interval.min(RETRY_PAUSE)
            }
        };
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}
