//! Threads of low priority, for computations that may wait while requests need the processors.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::{Interrupted, erased, restore};

/// The nice value of background threads (setpriority(2)): beside a busy thread of normal priority, Linux gives one of them a tenth
/// of a processor; on an idle processor it runs at full speed.
const NICE: i32 = 10;

/// A pool of threads with a low priority. Work beyond the number of threads waits in order.
#[derive(Debug, Clone)]
pub struct BackgroundThreads(Arc<Pool>);

/// A runtime whose blocking threads are the pool; nothing is polled on it.
#[derive(Debug)]
struct Pool(Option<Runtime>);

impl Drop for Pool {
    fn drop(&mut self) {
        // Dropping a `Runtime` blocks until its threads end, which tokio forbids within a task.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl BackgroundThreads {
    /// Up to `threads` threads, started when they are needed.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn new(name: &'static str, threads: NonZeroUsize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .thread_name(name)
            .max_blocking_threads(threads.get())
            .on_thread_start(lower_priority)
            .build()?;
        Ok(Self(Arc::new(Pool(Some(runtime)))))
    }

    /// Runs `work` on a thread of the pool.
    ///
    /// # Errors
    /// When the work panicked or the runtime is shutting down.
    pub async fn run<T, F>(&self, work: F) -> Result<T, Interrupted>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        erased::blocking(self.0.0.as_ref().map(Runtime::handle), Box::new(move || Box::new(work())))
            .await
            .map(restore)
    }
}

/// Lowers the priority of the calling thread, on Linux only: elsewhere a priority belongs to the whole process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(cause = %error, "the priority of a background thread cannot be lowered: it computes beside requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> BackgroundThreads {
        BackgroundThreads::new("background", NonZeroUsize::MIN).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_background_threads_have_a_low_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let initial = nice();
        assert_eq!(pool().run(nice).await.unwrap(), NICE.max(initial));
        assert_eq!((nice(), super::super::blocking(nice).await.unwrap()), (initial, initial));
    }

    #[tokio::test]
    async fn panic_is_an_error_and_the_thread_remains() {
        let pool = pool();
        let panicked = pool.run(|| panic!("of a test")).await.map(|()| 0);
        assert!(panicked.is_err());
        assert_eq!(pool.run(|| 1).await.unwrap(), 1);
    }
}
