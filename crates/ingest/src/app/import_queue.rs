//! Imports that wait to be written: bounded in number and in size, so that overload is answered at once and memory
//! has a limit. Any number of writers take from it, several imports at a time.
//!
//! A transaction costs the same whatever it holds, so few large ones are better than many small ones (ADR 19): one writer
//! at a time has the turn and takes what is there, and others join it only when a full batch waits. While many come, the
//! one with the turn waits a moment for more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_platform::db::DatabaseError;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::domain::{Import, ImportOutcome};

/// Imports that one transaction writes, at most.
pub const MAX_BATCH: usize = 64;

/// Imports that are worth a transaction: nobody waits for more.
const ENOUGH: usize = MAX_BATCH / 2;

/// After a batch of so many, more are expected in a moment.
const MANY: usize = 24;

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
    /// How long the writer with the turn waits for more, at most.
    gathering: Duration,
    waiting: Mutex<Waiting>,
    /// For one of the writers that have nothing to do.
    arrived: Notify,
    /// For the writer that waits for more.
    enough: Notify,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    turn_is_taken: bool,
    /// How many imports the last batch had.
    last_batch: usize,
}

/// The right to take a batch that is not full. It is free again when it is dropped.
pub struct Turn(ImportQueue);

/// What a writer does next.
enum Step {
    Take(Vec<Job>),
    Wait,
    WaitUntil(Instant),
}

impl ImportQueue {
    /// An empty queue for so many imports. While many come, a writer waits for more for as long as `gathering`.
    pub fn new(capacity: usize, gathering: Duration) -> Self {
        let (arrived, enough) = (Notify::new(), Notify::new());
        let capacity = capacity.max(1);
        Self { shared: Arc::new(Shared { capacity, gathering, waiting: Mutex::default(), arrived, enough }) }
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
        let was_full = waiting.is_full();
        waiting.bytes = bytes;
        waiting.jobs.push_back(job);
        let (count, became_full) = (waiting.jobs.len(), !was_full && waiting.is_full());
        drop(waiting);
        if count == 1 || became_full {
            self.shared.arrived.notify_one();
        }
        if count == ENOUGH || became_full {
            self.shared.enough.notify_one();
        }
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

    /// Waits for imports and takes what is there, [`MAX_BATCH`] at most, with the turn if it took that. `None` when
    /// `stop` is cancelled and nothing waits any more.
    pub async fn take(&self, stop: &CancellationToken) -> Option<(Vec<Job>, Option<Turn>)> {
        let (mut turn, mut gathering_until) = (None, None);
        loop {
            match self.step(&mut turn, &mut gathering_until, stop.is_cancelled()) {
                Step::Take(batch) => return Some((batch, turn)),
                Step::Wait if stop.is_cancelled() => return None,
                Step::Wait => drop(stop.run_until_cancelled(self.shared.arrived.notified()).await),
                Step::WaitUntil(moment) => tokio::select! {
                    () = self.shared.enough.notified() => {}
                    () = sleep_until(moment) => {}
                    () = stop.cancelled() => {}
                },
            }
        }
    }

    fn step(
        &self,
        turn: &mut Option<Turn>,
        gathering_until: &mut Option<Instant>,
        is_stopping: bool,
    ) -> Step {
        let mut waiting = self.waiting();
        let now = Instant::now();
        if turn.is_none() && !waiting.turn_is_taken && !waiting.jobs.is_empty() {
            waiting.turn_is_taken = true;
            *turn = Some(Turn(self.clone()));
            *gathering_until = (waiting.last_batch >= MANY).then(|| now + self.shared.gathering);
        }
        if !is_stopping && !waiting.is_full() {
            if turn.is_none() {
                return Step::Wait;
            }
            if let Some(moment) = *gathering_until
                && now < moment
                && waiting.jobs.len() < ENOUGH
            {
                return Step::WaitUntil(moment);
            }
        }
        let batch = waiting.drain();
        let is_for_others = waiting.is_full();
        drop(waiting);
        if is_for_others {
            self.shared.arrived.notify_one();
        }
        if batch.is_empty() {
            // Whoever waited has gone.
            *turn = None;
            return Step::Wait;
        }
        Step::Take(batch)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while the lock is held.
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.jobs.len() >= MAX_BATCH || self.bytes >= MAX_BATCH_BYTES
    }

    fn drain(&mut self) -> Vec<Job> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < MAX_BATCH {
            let Some(job) = self.jobs.pop_front() else { break };
            if !batch.is_empty() && bytes + job.bytes() > MAX_BATCH_BYTES {
                self.jobs.push_front(job);
                break;
            }
            self.bytes -= job.bytes();
            // Whoever waited for it has gone.
            if job.answer.is_closed() {
                continue;
            }
            bytes += job.bytes();
            batch.push(job);
        }
        self.last_batch = batch.len();
        batch
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.turn_is_taken = false;
        let is_awaited = !waiting.jobs.is_empty();
        drop(waiting);
        if is_awaited {
            self.0.shared.arrived.notify_one();
        }
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
    use std::pin::pin;

    use assay_contracts::conversation::Conversation;
    use assay_contracts::event::ConversationAccepted;
    use assay_messaging::OutgoingEvent;
    use assay_platform::runtime::{new_id, now};
    use futures_util::poll;

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

    const GATHERING: Duration = Duration::from_millis(2);

    fn queue(capacity: usize) -> ImportQueue {
        ImportQueue::new(capacity, GATHERING)
    }

    fn fill(queue: &ImportQueue, imports: usize) -> Vec<oneshot::Receiver<Written>> {
        (0..imports).map(|_| queue.push(import()).unwrap()).collect()
    }

    async fn take(queue: &ImportQueue) -> (usize, Option<Turn>) {
        let (jobs, turn) = queue.take(&CancellationToken::new()).await.unwrap();
        (jobs.len(), turn)
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_one_that_was_emptied_accepts_again() {
        let queue = queue(2);
        let waiting = fill(&queue, 2);
        assert_eq!(queue.push(import()).err(), Some(QueueFull));
        assert_eq!(take(&queue).await.0, waiting.len());
        assert!(queue.push(import()).is_ok());
    }

    #[tokio::test]
    async fn a_batch_is_bounded_and_an_import_that_nobody_waits_for_is_not_in_it() {
        let queue = queue(1_000);
        drop(queue.push(import()).unwrap());
        let waiting = fill(&queue, MAX_BATCH + 1);
        let first = take(&queue).await.0;
        let second = take(&queue).await.0;
        assert_eq!(first + second, waiting.len());
        assert!(first <= MAX_BATCH);
    }

    #[tokio::test(start_paused = true)]
    async fn another_writer_takes_a_full_batch_or_waits_for_the_turn() {
        let queue = queue(1_000);
        let _one = queue.push(import()).unwrap();
        let (taken, turn) = take(&queue).await;
        assert!(taken == 1 && turn.is_some());

        let mut other = pin!(take(&queue));
        let _more = fill(&queue, MAX_BATCH - 1);
        assert!(poll!(&mut other).is_pending());
        let _last = queue.push(import()).unwrap();
        let (taken, no_turn) = other.await;
        assert!(taken == MAX_BATCH && no_turn.is_none());

        let _one = queue.push(import()).unwrap();
        let mut other = pin!(take(&queue));
        assert!(poll!(&mut other).is_pending());
        drop(turn);
        assert_eq!(other.await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn while_many_come_more_of_them_are_waited_for_and_never_for_long() {
        let queue = queue(1_000);
        let started = Instant::now();
        let _few = fill(&queue, MANY - 1);
        assert_eq!(take(&queue).await.0, MANY - 1);
        let _many = fill(&queue, MANY);
        assert_eq!(take(&queue).await.0, MANY);
        assert_eq!(started.elapsed(), Duration::ZERO, "few came before these");

        let _one = queue.push(import()).unwrap();
        assert_eq!(take(&queue).await.0, 1);
        assert!((GATHERING..2 * GATHERING).contains(&started.elapsed()));

        let _many = fill(&queue, MANY);
        drop(take(&queue).await);
        let now = Instant::now();
        let _one = queue.push(import()).unwrap();
        let mut gathering = pin!(take(&queue));
        assert!(poll!(&mut gathering).is_pending());
        let _enough = fill(&queue, ENOUGH - 1);
        assert_eq!(gathering.await.0, ENOUGH);
        assert_eq!(now.elapsed(), Duration::ZERO, "nobody waits for more than enough");
    }

    #[tokio::test]
    async fn what_waits_is_taken_before_a_stop_ends_the_queue() {
        let queue = queue(2);
        let _waiting = queue.push(import()).unwrap();
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(queue.take(&stop).await.map(|(jobs, _)| jobs.len()), Some(1));
        assert!(queue.take(&stop).await.is_none());
    }
}
