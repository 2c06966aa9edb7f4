//! The queue of imports to be written. It is bounded in number and in bytes: imports beyond a limit are refused at once, and
//! memory is bounded. Any number of writers take batches from it.
//!
//! Group commit (ADR 19): a transaction costs about the same whatever its size, so few large ones are better than many
//! small ones. One writer at a time is the leader and takes what is queued; others take only full batches. Under load the
//! leader lingers a moment for more imports.
//!
//! Organizations take turns, and each may fill at most half of the queue: an organization with many imports neither delays
//! those of others nor causes their refusal.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use assay_platform::db::DatabaseError;
use assay_platform::runtime::LockExt as _;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::turns::Turns;
use crate::domain::{Import, ImportOutcome};

/// Maximum number of imports in one transaction.
pub const MAX_BATCH: usize = 64;

/// The leader does not linger once this many imports are queued.
const TARGET_BATCH: usize = MAX_BATCH / 2;

/// The leader lingers when the last batch had at least this many imports.
const LINGER_FROM: usize = 24;

/// Maximum bytes of imports ([`Import::bytes`]) in one transaction; a larger import is written alone. Batches of
/// more than a few megabytes save nothing and delay the other imports.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// Maximum bytes of imports in the queue.
const MAX_QUEUED_BYTES: usize = 256 * 1024 * 1024;

/// The result of writing one import. All imports of a failed batch share its error.
pub type WriteResult = Result<ImportOutcome, Arc<DatabaseError>>;

/// An import and the channel to its request.
pub struct Job {
    pub import: Arc<Import>,
    reply: oneshot::Sender<WriteResult>,
}

/// An import cannot be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueueFull {
    #[error("too many imports are waiting to be written")]
    WholeQueue,
    #[error("too many imports of the organization are waiting to be written")]
    OrganizationShare,
}

/// The queue; clones share it.
#[derive(Clone)]
pub struct ImportQueue {
    shared: Arc<Shared>,
}

struct Shared {
    capacity: usize,
    /// Maximum time that the leader waits for more imports.
    linger: Duration,
    state: Mutex<QueueState>,
    /// Wakes an idle writer.
    work_available: Notify,
    /// Wakes the lingering leader.
    target_reached: Notify,
}

#[derive(Default)]
struct QueueState {
    jobs: Turns<Job>,
    has_leader: bool,
    /// Number of imports in the last batch.
    last_batch: usize,
}

/// The right to take a batch that is not full; released on drop.
pub struct LeaderPermit(ImportQueue);

/// A writer's next step.
enum Step {
    Take(Vec<Job>),
    Wait,
    LingerUntil(Instant),
}

impl ImportQueue {
    /// An empty queue for `capacity` imports. Under load the leader waits up to `linger` for a larger batch.
    pub fn new(capacity: usize, linger: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                capacity: capacity.max(1),
                linger,
                state: Mutex::default(),
                work_available: Notify::new(),
                target_reached: Notify::new(),
            }),
        }
    }

    /// Appends an import; its result is sent to the receiver. Dropping the receiver withdraws the import unless a writer
    /// has already taken it.
    ///
    /// # Errors
    /// When the queue, or the half of it that an organization may use, is full.
    pub fn push(&self, import: Import) -> Result<oneshot::Receiver<WriteResult>, QueueFull> {
        let (reply, receiver) = oneshot::channel();
        let job = Job { import: Arc::new(import), reply };
        let mut state = self.lock();
        self.check_room(&state.jobs, &job)?;
        let had_full_batch = state.has_full_batch();
        state.jobs.push_back(job.import.organization_id, job.bytes(), job);
        let (count, completes_batch) = (state.jobs.len(), !had_full_batch && state.has_full_batch());
        drop(state);
        if count == 1 || completes_batch {
            self.shared.work_available.notify_one();
        }
        if count == TARGET_BATCH || completes_batch {
            self.shared.target_reached.notify_one();
        }
        Ok(receiver)
    }

    fn check_room(&self, jobs: &Turns<Job>, job: &Job) -> Result<(), QueueFull> {
        // `divisor` is 1 for the whole queue and 2 for the share of an organization. The first import may have any size.
        let is_full = |count: usize, bytes: usize, divisor: usize| {
            count >= (self.shared.capacity / divisor).max(1)
                || (count > 0 && bytes + job.bytes() > MAX_QUEUED_BYTES / divisor)
        };
        if is_full(jobs.len(), jobs.bytes(), 1) {
            return Err(QueueFull::WholeQueue);
        }
        let (own_jobs, own_bytes) = jobs.totals_of(job.import.organization_id);
        if is_full(own_jobs, own_bytes, 2) { Err(QueueFull::OrganizationShare) } else { Ok(()) }
    }

    /// Puts a job back at the front. The capacity was checked when it was pushed.
    pub fn requeue(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_front(job.import.organization_id, job.bytes(), job);
        drop(state);
        self.shared.work_available.notify_one();
    }

    /// Waits for imports and takes the next batch, at most [`MAX_BATCH`], with the permit if this writer is the leader.
    /// `None` when `stop` is cancelled and the queue is empty.
    pub async fn take(&self, stop: &CancellationToken) -> Option<(Vec<Job>, Option<LeaderPermit>)> {
        let (mut permit, mut linger_until) = (None, None);
        loop {
            match self.step(&mut permit, &mut linger_until, stop.is_cancelled()) {
                Step::Take(batch) => return Some((batch, permit)),
                Step::Wait if stop.is_cancelled() => return None,
                Step::Wait => drop(stop.run_until_cancelled(self.shared.work_available.notified()).await),
                Step::LingerUntil(deadline) => tokio::select! {
                    () = self.shared.target_reached.notified() => {}
                    () = sleep_until(deadline) => {}
                    () = stop.cancelled() => {}
                },
            }
        }
    }

    /// Decides what a writer does next. It becomes the leader (`permit`) if there is none, and then may linger until
    /// `linger_until`.
    fn step(
        &self,
        permit: &mut Option<LeaderPermit>,
        linger_until: &mut Option<Instant>,
        is_stopping: bool,
    ) -> Step {
        let mut state = self.lock();
        let now = Instant::now();
        if permit.is_none() && !state.has_leader && !state.jobs.is_empty() {
            state.has_leader = true;
            *permit = Some(LeaderPermit(self.clone()));
            *linger_until = (state.last_batch >= LINGER_FROM).then(|| now + self.shared.linger);
        }
        if !is_stopping && !state.has_full_batch() {
            if permit.is_none() {
                return Step::Wait;
            }
            if let Some(deadline) = *linger_until
                && now < deadline
                && state.jobs.len() < TARGET_BATCH
            {
                return Step::LingerUntil(deadline);
            }
        }
        let batch = state.take_batch();
        let has_full_batch = state.has_full_batch();
        drop(state);
        if has_full_batch {
            self.shared.work_available.notify_one();
        }
        if batch.is_empty() {
            // Every queued import was withdrawn.
            *permit = None;
            return Step::Wait;
        }
        Step::Take(batch)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // Nothing panics while the lock is held.
        self.shared.state.locked()
    }
}

impl QueueState {
    fn has_full_batch(&self) -> bool {
        self.jobs.len() >= MAX_BATCH || self.jobs.bytes() >= MAX_BATCH_BYTES
    }

    fn take_batch(&mut self) -> Vec<Job> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH {
            let Some(job) = self.jobs.pop() else { break };
            if !batch.is_empty() && bytes + job.bytes() > MAX_BATCH_BYTES {
                self.jobs.push_front(job.import.organization_id, job.bytes(), job);
                break;
            }
            if job.reply.is_closed() {
                continue; // The import was withdrawn.
            }
            bytes += job.bytes();
            batch.push(job);
        }
        self.last_batch = batch.len();
        batch
    }
}

impl Drop for LeaderPermit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_leader = false;
        let has_work = !state.jobs.is_empty();
        drop(state);
        if has_work {
            self.0.shared.work_available.notify_one();
        }
    }
}

impl Job {
    /// Sends the result to the request, if it is still waiting.
    pub fn complete(self, result: WriteResult) {
        // The receiver is gone after a timeout. If the import was committed, a retry is answered as a duplicate.
        let _ = self.reply.send(result);
    }

    fn bytes(&self) -> usize {
        self.import.bytes()
    }
}

#[cfg(test)]
mod tests;
