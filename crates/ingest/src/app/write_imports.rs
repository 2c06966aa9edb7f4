//! Writes queued imports: those that arrive during one commit go into the next transaction (group commit).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use assay_messaging::outbox::{Backlog, FastPathClaim, Outbox};
use assay_platform::db::idempotency::KeyReuse;
use assay_platform::runtime::{now, timeout};
use tokio_util::sync::CancellationToken;

use super::import_queue::{ImportQueue, Job, WriteResult};
use crate::domain::{Import, ImportOutcome};
use crate::store::Store;

/// Pause between two attempts to create the partitions.
const PARTITIONS_RETRY: Duration = Duration::from_secs(1);

/// A leader whose transaction takes longer gives up leadership.
const LEADER_TIMEOUT: Duration = Duration::from_millis(50);

/// Takes batches of imports from the queue and commits them.
#[derive(Clone)]
pub struct Writer {
    pub store: Store,
    pub queue: ImportQueue,
    /// Receives committed events for the fast path.
    pub outbox: Outbox,
    /// Counts committed events.
    pub backlog: Backlog,
}

/// Runs one writer until `stop`, and then until the queue is empty. A failure is sent to the requests of the failed batch.
pub async fn write_imports(writer: Writer, stop: CancellationToken) {
    if !prepare_partitions(&writer.store, &stop).await {
        return;
    }
    while let Some((jobs, permit)) = writer.queue.take(&stop).await {
        let mut writing = pin!(write(&writer, jobs));
        if timeout(LEADER_TIMEOUT, &mut writing).await.is_none() {
            // Blocked, for instance by a lock: another writer becomes the leader.
            drop(permit);
            writing.await;
        }
    }
}

/// Creates the partitions of this and the next month before the first write: rows in the default partition would have to be
/// moved later. False when the process stops first.
async fn prepare_partitions(store: &Store, stop: &CancellationToken) -> bool {
    while let Err(error) = store.prepare_partitions(now()).await {
        tracing::warn!(cause = %error, "imports cannot be written yet: trying again");
        if timeout(PARTITIONS_RETRY, stop.cancelled()).await.is_some() {
            return false;
        }
    }
    true
}

async fn write(writer: &Writer, jobs: Vec<Job>) {
    let Batch { unique, repeats } = Batch::of(jobs);
    let imports = unique.iter().map(|job| Arc::clone(&job.import)).collect();
    let claim = writer.outbox.claim_fast_path();
    let results = write_batch(&writer.store, imports, claim).await;
    let accepted = unique.iter().zip(&results).filter(|(_, result)| is_accepted(result));
    let events: Vec<_> = accepted.map(|(job, _)| job.import.event.clone()).collect();
    if !events.is_empty() {
        writer.backlog.add(u64::try_from(events.len()).unwrap_or(u64::MAX));
        writer.outbox.dispatch(claim, events);
    }
    for (first, repeat) in repeats {
        match result_of_repeat(&results[first], &unique[first].import, &repeat.import) {
            Some(result) => repeat.complete(result),
            None => writer.queue.requeue(repeat),
        }
    }
    for (job, result) in unique.into_iter().zip(results) {
        job.complete(result);
    }
}

fn is_accepted(result: &WriteResult) -> bool {
    matches!(result, Ok(ImportOutcome::Accepted))
}

/// One result per import. After a permanent error the imports are retried one at a time, so that an import that the
/// database rejects does not fail the others. After a transient error (an outage) retries would only delay every response.
async fn write_batch(store: &Store, imports: Vec<Arc<Import>>, claim: FastPathClaim) -> Vec<WriteResult> {
    let error = match store.accept_batch(imports.clone(), claim).await {
        Ok(outcomes) => return outcomes.into_iter().map(Ok).collect(),
        Err(error) => Arc::new(error),
    };
    if imports.len() == 1 || error.is_transient() {
        return imports.iter().map(|_| Err(Arc::clone(&error))).collect();
    }
    tracing::warn!(imports = imports.len(), cause = %error, "a batch failed: retrying its imports one at a time");
    let mut results = Vec::with_capacity(imports.len());
    for import in imports {
        let result = match store.accept_batch(vec![import], claim).await {
            Ok(outcomes) => outcomes.into_iter().next().map(Ok),
            Err(error) => Some(Err(Arc::new(error))),
        };
        results.push(result.unwrap_or_else(|| Err(Arc::clone(&error))));
    }
    results
}

/// Jobs split by idempotency key: one transaction writes each key once.
struct Batch {
    unique: Vec<Job>,
    /// Jobs that repeat a key, with the index of its first job in `unique`.
    repeats: Vec<(usize, Job)>,
}

impl Batch {
    fn of(jobs: Vec<Job>) -> Self {
        let (mut unique, mut repeats): (Vec<Job>, Vec<(usize, Job)>) = (Vec::new(), Vec::new());
        for job in jobs {
            match unique.iter().position(|first| same_key(&first.import, &job.import)) {
                Some(first) => repeats.push((first, job)),
                None => unique.push(job),
            }
        }
        Self { unique, repeats }
    }
}

fn same_key(one: &Import, other: &Import) -> bool {
    match (&one.record, &other.record) {
        (Some(one), Some(other)) => one.organization_id == other.organization_id && one.key == other.key,
        _ => false,
    }
}

/// The result of a concurrent request that repeats an idempotency key, derived from that of the first request; `None`
/// when the repeat must be written separately.
fn result_of_repeat(result: &WriteResult, first: &Import, repeat: &Import) -> Option<WriteResult> {
    let (first, repeat) = (first.record.as_ref()?, repeat.record.as_ref()?);
    let same_request = first.fingerprint == repeat.fingerprint;
    match result {
        Ok(ImportOutcome::Accepted) if same_request => {
            Some(Ok(ImportOutcome::KeyReused(KeyReuse::Replay(first.response.clone()))))
        }
        Ok(ImportOutcome::Accepted) => Some(Ok(ImportOutcome::KeyReused(KeyReuse::Conflict))),
        result if same_request => Some(result.clone()),
        _ => None,
    }
}
