//! Imports that wait to be written: bounded in number and in size, so that overload is answered at once and memory
//! has a limit. Any number of writers take from it, several imports at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_platform::db::DatabaseError;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::domain::{Import, ImportOutcome};

/// Imports that one transaction writes, at most.
pub const MAX_BATCH: usize = 64;

/// Bytes of packed transcripts that one transaction writes, unless a single one is larger: beyond a few megabytes a larger
/// batch saves nothing and holds up the others.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of packed transcripts that may wait.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;

/// What a writer says to the one who waits. Everybody in a batch gets the same error.
pub type Written = Result<ImportOutcome, Arc<DatabaseError>>;

/// An import and the one who waits for it.
pub struct Job {
    /// What to write.
    pub import: Arc<Import>,
    answer: oneshot::Sender<Written>,
}

/// No more imports can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many imports are waiting to be written")]
pub struct QueueFull;

/// The queue. Cloned freely; all clones are one.
#[derive(Clone)]
pub struct ImportQueue {
    shared: Arc<Shared>,
}

struct Shared {
    capacity: usize,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
}

impl ImportQueue {
    /// An empty queue for so many imports.
    pub fn new(capacity: usize) -> Self {
        let (waiting, arrived) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { capacity: capacity.max(1), waiting, arrived }) }
    }

    /// Puts an import at the end; the answer comes through the receiver. Dropping the receiver withdraws the import
    /// as long as no writer has taken it.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn push(&self, import: Import) -> Result<oneshot::Receiver<Written>, QueueFull> {
        let (answer, receiver) = oneshot::channel();
        let job = Job { import: Arc::new(import), answer };
        let mut waiting = self.waiting();
        let bytes = waiting.bytes + job.bytes();
        if waiting.jobs.len() >= self.shared.capacity
            || (bytes > MAX_WAITING_BYTES && !waiting.jobs.is_empty())
        {
            return Err(QueueFull);
        }
        waiting.bytes = bytes;
        waiting.jobs.push_back(job);
        drop(waiting);
        self.shared.arrived.notify_one();
        Ok(receiver)
    }

    /// Puts a job back to the front; it was counted when it came.
    pub fn put_back(&self, job: Job) {
        let mut waiting = self.waiting();
        waiting.bytes += job.bytes();
        waiting.jobs.push_front(job);
        drop(waiting);
        self.shared.arrived.notify_one();
    }

    /// Waits for imports and takes what is there, [`MAX_BATCH`] at most. `None` when `stop` is cancelled and nothing
    /// waits any more.
    pub async fn take(&self, stop: &CancellationToken) -> Option<Vec<Job>> {
        loop {
            let batch = self.drain();
            if !batch.is_empty() {
                return Some(batch);
            }
            stop.run_until_cancelled(self.shared.arrived.notified()).await;
            if stop.is_cancelled() && self.waiting().jobs.is_empty() {
                return None;
            }
        }
    }

    fn drain(&self) -> Vec<Job> {
        let mut waiting = self.waiting();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH {
            let Some(job) = waiting.jobs.pop_front() else { break };
            if !batch.is_empty() && bytes + job.bytes() > MAX_BATCH_BYTES {
                waiting.jobs.push_front(job);
                break;
            }
            waiting.bytes -= job.bytes();
            // Whoever waited for it has gone.
            if job.answer.is_closed() {
                continue;
            }
            bytes += job.bytes();
            batch.push(job);
        }
        // This writer is busy from now on: another one may take the rest.
        if !waiting.jobs.is_empty() {
            self.shared.arrived.notify_one();
        }
        batch
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while the lock is held.
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// Tells the one who waits, if he still does.
    pub fn answer(self, written: Written) {
        // An import that is committed although nobody waits any more: its sender will be told that it is a duplicate.
        let _ = self.answer.send(written);
    }

    fn bytes(&self) -> usize {
        self.import.messages.as_bytes().len() + self.import.agents_json.len()
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::Conversation;
    use assay_contracts::event::ConversationAccepted;
    use assay_messaging::OutgoingEvent;
    use assay_platform::runtime::{new_id, now};

    use super::*;

    fn import() -> Import {
        let body = br#"{"ticket_id":"T","messages":[
            {"author":{"type":"mixed"},"content":"x","external_id":"1","timestamp":1}]}"#;
        let conversation = Conversation::parse(body).unwrap();
        let (organization_id, ticket_id, accepted_at) = (new_id(), new_id(), now());
        let event = ConversationAccepted { organization_id, ticket_id, accepted_at };
        let event = OutgoingEvent::new(new_id(), accepted_at, &event).unwrap();
        Import::new(ticket_id, organization_id, conversation, &[], event, accepted_at).unwrap()
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_one_that_was_emptied_accepts_again() {
        let queue = ImportQueue::new(2);
        let waiting = [queue.push(import()).unwrap(), queue.push(import()).unwrap()];
        assert_eq!(queue.push(import()).err(), Some(QueueFull));
        let taken = queue.take(&CancellationToken::new()).await.unwrap();
        assert_eq!(taken.len(), waiting.len());
        assert!(queue.push(import()).is_ok());
    }

    #[tokio::test]
    async fn a_batch_is_bounded_and_an_import_that_nobody_waits_for_is_not_in_it() {
        let queue = ImportQueue::new(1_000);
        drop(queue.push(import()).unwrap());
        let waiting: Vec<_> = (0..MAX_BATCH + 1).map(|_| queue.push(import()).unwrap()).collect();
        let stop = CancellationToken::new();
        let first = queue.take(&stop).await.unwrap();
        let second = queue.take(&stop).await.unwrap();
        assert_eq!(first.len() + second.len(), waiting.len());
        assert!(first.len() <= MAX_BATCH);
    }

    #[tokio::test]
    async fn what_waits_is_taken_before_a_stop_ends_the_queue() {
        let queue = ImportQueue::new(2);
        let _waiting = queue.push(import()).unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(queue.take(&stop).await.map(|jobs| jobs.len()), Some(1));
        assert!(queue.take(&stop).await.is_none());
    }
}
