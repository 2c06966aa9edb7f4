//! What the role does: looking for jobs, running one, writing its file.

mod run_job;
mod set_file_periods;
mod work_off_jobs;
mod write_file;

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::retention::Period;
use assay_export::store::WorkStore;
use assay_platform::objects::Objects;
use tokio::sync::Semaphore;

pub(crate) use self::set_file_periods::set_file_periods;
pub(crate) use self::work_off_jobs::work_off_jobs;

/// How jobs are worked off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkSettings {
    /// How long a job is held without a heartbeat.
    pub(crate) lease: Duration,
    /// How often jobs are looked for that nobody told of.
    pub(crate) poll_interval: Duration,
    /// Age from which on such jobs are taken.
    pub(crate) pending_grace: Duration,
    /// Attempts at a job before it fails for good.
    pub(crate) max_attempts: u32,
    /// Pause after the first failed attempt.
    pub(crate) retry_delay: Duration,
    /// How long files are kept.
    pub(crate) file_retention: Period,
    /// How long a job waits for evaluations on their way into the read model.
    pub(crate) evaluations_wait: Duration,
}

/// What jobs are worked off with.
pub(crate) struct Worker {
    store: Arc<dyn WorkStore>,
    objects: Objects,
    settings: WorkSettings,
    /// A place for each file that may be written at the same time. Jobs that wait for their evaluations hold none.
    places: Semaphore,
}

impl Worker {
    pub(crate) fn new(
        store: Arc<dyn WorkStore>,
        objects: Objects,
        settings: WorkSettings,
        parallel_jobs: usize,
    ) -> Self {
        Self { store, objects, settings, places: Semaphore::new(parallel_jobs) }
    }
}

/// A span as the store counts it.
fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
