//! The runtime that a part of the process was started on, for work that must not end with another one.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::context::TokioContext;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

/// A runtime. HTTP servers have one for each of their threads, and a server that stops ends them one after the other: a
/// connection to another service that one request opened, and the next one uses, must not belong to any of them.
#[derive(Debug, Clone)]
pub struct Home {
    handle: Option<Handle>,
}

impl Home {
    /// The runtime of the caller; outside of any runtime, wherever the work is done.
    pub fn here() -> Self {
        Self { handle: Handle::try_current().ok() }
    }

    /// Does `work` where it is awaited, with everything that it starts or opens (tasks, timers, connections) belonging to
    /// this runtime.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        match &self.handle {
            Some(handle) => TokioContext::new(work, handle.clone()).await,
            None => work.await,
        }
    }

    /// Starts `work` on this runtime, for whoever keeps what is answered: dropping it gives the work up.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the task has an owner and ends with it")]
    pub fn start<F>(&self, work: F) -> Started
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work = work.instrument(tracing::Span::current());
        let task = match &self.handle {
            Some(handle) => handle.spawn(work),
            None => tokio::task::spawn(work),
        };
        Started(AbortOnDropHandle::new(task))
    }
}

/// Work that goes on beside its owner, see [`Home::start`].
#[derive(Debug)]
pub struct Started(AbortOnDropHandle<()>);

impl Started {
    /// Whether it has come to its end.
    pub fn has_ended(&self) -> bool {
        self.0.is_finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_on_another_thread_outlives_its_runtime() {
        let home_runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let home = home_runtime.block_on(async { Home::here() });
        let passing = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (go_on, told) = tokio::sync::oneshot::channel::<()>();
        let mut tasks = tokio::task::JoinSet::new();
        passing.block_on(home.run(async { tasks.spawn(told) }));
        drop(passing);
        go_on.send(()).unwrap();
        let ended = home_runtime.block_on(tasks.join_next());
        assert!(ended.is_some_and(|ended| ended.is_ok_and(|received| received.is_ok())));
    }
}
