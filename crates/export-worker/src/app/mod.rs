//! The use cases: claiming jobs, running one, writing its file.

mod run_job;
mod run_maintenance;
mod run_worker;
mod write_file;

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::retention::RetentionPeriod;
use assay_export::store::WorkStore;
use assay_platform::objects::Objects;
use tokio::sync::Semaphore;

pub(crate) use self::run_maintenance::run_maintenance;
pub(crate) use self::run_worker::run_worker;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerSettings {
    /// Duration of a lease without a heartbeat.
    pub(crate) lease: Duration,
    /// Interval of polling for jobs whose event was lost.
    pub(crate) poll_interval: Duration,
    /// Minimum age of pending jobs claimed by polling.
    pub(crate) pending_grace: Duration,
    /// Attempts before a job fails permanently.
    pub(crate) max_attempts: u32,
    /// Pause after the first failed attempt.
    pub(crate) retry_delay: Duration,
    pub(crate) file_retention: RetentionPeriod,
    /// How long a job waits for the read model to reach its target sequence.
    pub(crate) evaluations_wait: Duration,
}

pub(crate) struct Worker {
    store: Arc<dyn WorkStore>,
    objects: Objects,
    settings: WorkerSettings,
    /// Limits concurrent file writes. Jobs that wait for the read model hold no permit.
    write_permits: Semaphore,
}

impl Worker {
    pub(crate) fn new(
        store: Arc<dyn WorkStore>,
        objects: Objects,
        settings: WorkerSettings,
        parallel_jobs: usize,
    ) -> Self {
        Self { store, objects, settings, write_permits: Semaphore::new(parallel_jobs) }
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
