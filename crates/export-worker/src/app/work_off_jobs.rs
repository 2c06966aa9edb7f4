//! Takes one job after the other: when told of one, and now and then without being told, for jobs whose event was
//! lost or whose worker died.

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::time::Timestamp;
use assay_export::domain::lease::{Claim, ClaimTerms};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{BoxError, new_id, now};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::run_job::failure_message;
use super::{Worker, millis};

/// Works off jobs, one at a time, until `stop`. A task of `Phase::Consume`.
///
/// # Errors
/// None: every failure is the job's or is waited out.
pub(crate) async fn work_off_jobs(
    worker: Arc<Worker>,
    news: Arc<Notify>,
    stop: CancellationToken,
) -> Result<(), BoxError> {
    let mut grace = worker.settings.pending_grace;
    while !stop.is_cancelled() {
        match worker.claim(grace).await {
            Ok(Some(claim)) => {
                worker.run_job(claim, &stop).await;
                // Others may have been told of while this worker was busy.
                grace = Duration::ZERO;
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(cause = %error, "export jobs cannot be looked for: tried again soon")
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = news.notified() => grace = Duration::ZERO,
            () = tokio::time::sleep(worker.settings.poll_interval) => {
                grace = worker.settings.pending_grace;
                worker.end_hopeless_jobs().await;
            }
        }
    }
    Ok(())
}

impl Worker {
    async fn claim(&self, grace: Duration) -> Result<Option<Claim>, DatabaseError> {
        let now = now();
        let terms = ClaimTerms {
            owner: new_id(),
            now,
            lease_millis: millis(self.settings.lease),
            pending_before: created_before(now, grace),
            max_tries: self.settings.max_attempts,
        };
        self.store.claim(terms).await
    }

    /// Jobs whose workers died with every attempt.
    async fn end_hopeless_jobs(&self) {
        let attempts = self.settings.max_attempts;
        let message = failure_message("the file could not be written", attempts);
        match self.store.fail_exhausted(attempts, &message, now()).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::error!(count, attempts, "export jobs failed: their workers died with each attempt")
            }
            Err(error) => {
                tracing::warn!(cause = %error, "hopeless export jobs cannot be ended: tried again soon")
            }
        }
    }
}

/// Up to when a pending job must have been created to be taken. Without a grace every one is: the clock of whoever
/// created it may be ahead of this one.
fn created_before(now: Timestamp, grace: Duration) -> Timestamp {
    if grace.is_zero() { Timestamp::MAX } else { now.plus_millis(-millis(grace)) }
}
