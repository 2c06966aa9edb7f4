//! The use cases: claiming and running jobs, writing files, retention periods, and removal of left-over files.

mod run_job;
mod run_maintenance;
mod run_slot;
mod slot_shares;
mod sweep_files;
mod write_file;
mod write_permits;

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::retention::RetentionPeriod;
use assay_export::store::WorkStore;
use assay_platform::objects::Objects;
use assay_platform::web::Shares;
use tokio::sync::Semaphore;

pub(crate) use self::run_maintenance::run_maintenance;
pub(crate) use self::run_slot::run_slot;
use self::slot_shares::slot_shares;
pub(crate) use self::sweep_files::sweep;
use self::write_permits::WritePermits;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerSettings {
    /// Duration of a lease unless it is renewed.
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

/// What the slots of this process share.
pub(crate) struct Worker {
    store: WorkStore,
    objects: Objects,
    settings: WorkerSettings,
    slot_shares: Shares,
    /// One slot claims at a time, so that it knows which slots the others have occupied.
    claim_permit: Semaphore,
    /// Limits concurrent file writes. Jobs that wait for the read model hold no permit.
    write_permits: Arc<WritePermits>,
}

impl Worker {
    pub(crate) fn new(
        store: WorkStore,
        objects: Objects,
        settings: WorkerSettings,
        parallel_jobs: usize,
        waiting_jobs: usize,
    ) -> Self {
        Self {
            store,
            objects,
            settings,
            slot_shares: slot_shares(parallel_jobs, waiting_jobs),
            claim_permit: Semaphore::new(1),
            write_permits: WritePermits::new(parallel_jobs),
        }
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
