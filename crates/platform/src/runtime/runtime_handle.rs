//! A handle to a runtime, for work that must outlive the runtime of the caller.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::context::TokioContext;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

/// A handle to a runtime. HTTP servers have one runtime per thread, and a stopping server ends them one after the other: a
/// connection to another service that is opened for one request and reused by the next must not belong to any of them.
#[derive(Debug, Clone)]
pub struct RuntimeHandle {
    handle: Option<Handle>,
}

impl RuntimeHandle {
    /// The runtime of the caller. Created outside of a runtime, it stands for the runtime that polls the work.
    pub fn current() -> Self {
        Self { handle: Handle::try_current().ok() }
    }

    /// Runs `work` in the calling task; tasks, timers and connections that it creates belong to this runtime.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        match &self.handle {
            Some(handle) => TokioContext::new(work, handle.clone()).await,
            None => work.await,
        }
    }

    /// Spawns `work` on this runtime. Dropping the result aborts it.
    #[allow(clippy::disallowed_methods, reason = "the task has an owner and ends with it")]
    pub fn spawn<F>(&self, work: F) -> AbortOnDropHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work = work.instrument(tracing::Span::current());
        let task = match &self.handle {
            Some(handle) => handle.spawn(work),
            None => tokio::task::spawn(work),
        };
        AbortOnDropHandle::new(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_outlives_the_runtime_that_spawned_it() {
        let owner = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = owner.block_on(async { RuntimeHandle::current() });
        let short_lived = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let mut tasks = tokio::task::JoinSet::new();
        short_lived.block_on(handle.run(async { tasks.spawn(receiver) }));
        drop(short_lived);
        sender.send(()).unwrap();
        let joined = owner.block_on(tasks.join_next());
        assert!(joined.is_some_and(|joined| joined.is_ok_and(|received| received.is_ok())));
    }
}
