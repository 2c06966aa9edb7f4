//! Writes what waits in the queue: whatever came while the last transaction was committed goes into the next one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use assay_messaging::outbox::{Backlog, Handover, Outbox};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::Earlier;
use assay_platform::runtime::{BoxError, now, within};
use tokio_util::sync::CancellationToken;

use super::import_queue::{ImportQueue, Job, Written};
use crate::domain::{Import, ImportOutcome};
use crate::store::Store;

/// Between two attempts to prepare the tables.
const PREPARE_RETRY: Duration = Duration::from_secs(1);

/// A writer that is not done after this leaves the turn to another one.
const TURN: Duration = Duration::from_millis(50);

/// What a writer works with.
#[derive(Clone)]
pub struct Writer {
    /// Where imports are written.
    pub store: Arc<dyn Store>,
    /// Where imports come from.
    pub queue: ImportQueue,
    /// Is given the events that were committed.
    pub outbox: Outbox,
    /// Is told of events that were committed.
    pub backlog: Backlog,
}

/// A writer's work: goes on until `stop`, and then until nothing waits any more.
///
/// # Errors
/// None; a failure is told to those whose imports it concerns.
pub async fn write_imports(writer: Writer, stop: CancellationToken) -> Result<(), BoxError> {
    if !prepare(writer.store.as_ref(), &stop).await {
        return Ok(());
    }
    while let Some((jobs, turn)) = writer.queue.take(&stop).await {
        let mut writing = pin!(write(&writer, jobs));
        if within(TURN, &mut writing).await.is_none() {
            // Something is in its way, for instance a lock: the others need not wait for it.
            drop(turn);
            writing.await;
        }
    }
    Ok(())
}

/// Nothing is written before the tables are prepared: a row of a month without a partition would be in its way.
/// False when the process stops before that.
async fn prepare(store: &dyn Store, stop: &CancellationToken) -> bool {
    while let Err(error) = store.prepare(now()).await {
        tracing::warn!(cause = %error, "imports cannot be written yet: trying again");
        if within(PREPARE_RETRY, stop.cancelled()).await.is_some() {
            return false;
        }
    }
    true
}

async fn write(writer: &Writer, jobs: Vec<Job>) {
    let Batch { leaders, followers } = Batch::of(jobs);
    let imports = leaders.iter().map(|job| Arc::clone(&job.import)).collect();
    let handover = writer.outbox.handover();
    let written = write_batch(writer.store.as_ref(), imports, handover).await;
    let accepted = leaders.iter().zip(&written).filter(|(_, written)| is_accepted(written));
    let events: Vec<_> = accepted.map(|(job, _)| job.import.event.clone()).collect();
    if !events.is_empty() {
        writer.backlog.add(u64::try_from(events.len()).unwrap_or(u64::MAX));
        writer.outbox.hand_over(handover, events);
    }
    for (leader, follower) in followers {
        match share(&written[leader], &leaders[leader].import, &follower.import) {
            Some(shared) => follower.answer(shared),
            None => writer.queue.put_back(follower),
        }
    }
    for (job, written) in leaders.into_iter().zip(written) {
        job.answer(written);
    }
}

fn is_accepted(written: &Written) -> bool {
    matches!(written, Ok(ImportOutcome::Accepted))
}

/// One outcome for each import. A batch that fails for another reason than an outage is written again one by one, so
/// that an import which the database refuses takes no other down.
async fn write_batch(store: &dyn Store, imports: Vec<Arc<Import>>, handover: Handover) -> Vec<Written> {
    let error = match store.accept_batch(imports.clone(), handover).await {
        Ok(outcomes) => return outcomes.into_iter().map(Ok).collect(),
        Err(error) => Arc::new(error),
    };
    if imports.len() == 1 || is_outage(&error) {
        return imports.iter().map(|_| Err(Arc::clone(&error))).collect();
    }
    tracing::warn!(imports = imports.len(), cause = %error, "a batch failed: its imports are written one by one");
    let mut written = Vec::with_capacity(imports.len());
    for import in imports {
        let outcome = match store.accept_batch(vec![import], handover).await {
            Ok(outcomes) => outcomes.into_iter().next().map(Ok),
            Err(error) => Some(Err(Arc::new(error))),
        };
        written.push(outcome.unwrap_or_else(|| Err(Arc::clone(&error))));
    }
    written
}

/// Writing one by one during an outage would only make everybody wait.
fn is_outage(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Unavailable(_) | DatabaseError::Interrupted(_))
}

/// Jobs that are written together have different idempotency keys; those that repeat one wait for its first job.
struct Batch {
    leaders: Vec<Job>,
    /// With the index of the leader that has the same key.
    followers: Vec<(usize, Job)>,
}

impl Batch {
    fn of(jobs: Vec<Job>) -> Self {
        let (mut leaders, mut followers): (Vec<Job>, Vec<(usize, Job)>) = (Vec::new(), Vec::new());
        for job in jobs {
            match leaders.iter().position(|leader| same_key(&leader.import, &job.import)) {
                Some(leader) => followers.push((leader, job)),
                None => leaders.push(job),
            }
        }
        Self { leaders, followers }
    }
}

fn same_key(one: &Import, other: &Import) -> bool {
    match (&one.record, &other.record) {
        (Some(one), Some(other)) => one.organization_id == other.organization_id && one.key == other.key,
        _ => false,
    }
}

/// What the outcome of the first request with a key means for another one with the same key that came before the
/// first was answered; `None` when it must be written itself to find out.
fn share(written: &Written, leader: &Import, follower: &Import) -> Option<Written> {
    let (leader, follower) = (leader.record.as_ref()?, follower.record.as_ref()?);
    let same_request = leader.fingerprint == follower.fingerprint;
    match written {
        Ok(ImportOutcome::Accepted) if same_request => {
            Some(Ok(ImportOutcome::Earlier(Earlier::SameRequest(leader.answer.clone()))))
        }
        Ok(ImportOutcome::Accepted) => Some(Ok(ImportOutcome::Earlier(Earlier::OtherRequest))),
        written if same_request => Some(written.clone()),
        _ => None,
    }
}
