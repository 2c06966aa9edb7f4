//! The loop of a slot: claims one job after the other. Events wake it; polling finds jobs whose event was lost or whose
//! worker crashed.

use std::sync::Arc;
use std::time::Duration;

use assay_contracts::time::Timestamp;
use assay_export::domain::lease::{Claim, ClaimTerms};
use assay_platform::db::{Clock, DatabaseError};
use assay_platform::runtime::{new_id, now};
use assay_platform::web::ShareInUse;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::run_job::{MAX_RETRY_DELAY, failure_message};
use super::{Worker, millis};

/// More than the clocks of two workers that run may differ by.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

/// Runs jobs, one at a time, until `stop`. A task of `Phase::Consume`. Claims no job before the clocks are compared and while
/// the clock is wrong: leases of other workers would seem to have expired.
pub(crate) async fn run_slot(
    worker: Arc<Worker>,
    clock: Clock,
    wakeup: Arc<Notify>,
    stop: CancellationToken,
) {
    stop.run_until_cancelled(clock.wait_for_comparison()).await;
    let mut grace = worker.settings.pending_grace;
    while !stop.is_cancelled() {
        let claimed = if clock.is_trusted() { worker.claim(grace, &stop).await } else { Ok(None) };
        match claimed {
            Ok(Some((claim, share))) => {
                worker.run_job(claim, &stop).await;
                drop(share);
                // Events of other jobs may have arrived meanwhile.
                grace = Duration::ZERO;
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(cause = %error, "export jobs cannot be claimed: tried again soon")
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = wakeup.notified() => grace = Duration::ZERO,
            () = tokio::time::sleep(worker.settings.poll_interval) => {
                grace = worker.settings.pending_grace;
                if clock.is_trusted() {
                    worker.fail_exhausted_jobs().await;
                }
            }
        }
    }
}

impl Worker {
    /// A job, and the slot that its organization occupies; the share is never `None`, because the claim leaves
    /// out an organization at its limit.
    async fn claim(
        &self,
        grace: Duration,
        stop: &CancellationToken,
    ) -> Result<Option<(Claim, Option<ShareInUse>)>, DatabaseError> {
        let permit = stop.run_until_cancelled(self.claim_permit.acquire()).await;
        let Some(Ok(_permit)) = permit else { return Ok(None) };
        // The stop signal may have come with the permit: a job that another slot has just released is left to other workers.
        if stop.is_cancelled() {
            return Ok(None);
        }
        let now = now();
        let terms = ClaimTerms {
            owner: new_id(),
            now,
            lease_millis: millis(self.settings.lease),
            latest_lease_end: self.latest_lease_end(now),
            pending_before: created_before(now, grace),
            max_attempts: self.settings.max_attempts,
            except: self.slot_shares.owner_at_limit(),
        };
        let claim = self.store.claim(terms).await?;
        Ok(claim.map(|claim| {
            let share = self.slot_shares.take_one(claim.organization_id);
            (claim, share)
        }))
    }

    /// Leases and the delays between attempts end earlier. Twice the lease: workers with other settings may have longer ones.
    fn latest_lease_end(&self, now: Timestamp) -> Timestamp {
        let longest = (MAX_RETRY_DELAY + CLOCK_TOLERANCE).max(self.settings.lease.saturating_mul(2));
        now.plus_millis(millis(longest))
    }

    /// Fails jobs whose workers crashed in every attempt.
    async fn fail_exhausted_jobs(&self) {
        let attempts = self.settings.max_attempts;
        let message = failure_message("the file could not be written", attempts);
        let now = now();
        match self.store.fail_exhausted(attempts, self.latest_lease_end(now), &message, now).await {
            Ok(0) => {}
            Ok(count) => {
                tracing::error!(count, attempts, "export jobs failed: their workers crashed in every attempt")
            }
            Err(error) => {
                tracing::warn!(cause = %error, "exhausted export jobs cannot be failed: tried again soon")
            }
        }
    }
}

/// Latest creation time of pending jobs to claim. Without a grace all are claimed: the clock of their creator may be ahead.
fn created_before(now: Timestamp, grace: Duration) -> Timestamp {
    if grace.is_zero() { Timestamp::MAX } else { now.plus_millis(-millis(grace)) }
}
