//! Runs one job: renews the lease while its file is written, then completes, retries, fails or releases the job.

use std::time::Duration;

use assay_export::domain::lease::{Claim, FinishedFile};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::write_file::{WriteFileError, WrittenFile};
use super::{Worker, millis};
use crate::metrics;

/// Tries to complete a job whose file is written: a short outage of the database must not discard the work.
const COMPLETION_TRIES: u32 = 5;
const COMPLETION_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Time to finish an attempt after the stop signal. Together with the clean-up of the file it stays below the shutdown budget
/// of the process.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(10);

pub(super) const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);

/// Why a running attempt is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    /// The worker stops.
    Stopping,
    /// Another worker has claimed the job, or will soon.
    LeaseLost,
}

impl Worker {
    /// Runs one attempt, until its end or `stop`.
    pub(super) async fn run_job(&self, claim: Claim, stop: &CancellationToken) {
        let span = tracing::info_span!("export", export = %claim.id, attempt = claim.attempt);
        self.run(&claim, stop).instrument(span).await;
    }

    async fn run(&self, claim: &Claim, stop: &CancellationToken) {
        let began = Instant::now();
        let cancel = CancellationToken::new();
        let writing = self.write_file(claim, &cancel);
        tokio::pin!(writing);
        let (written, interruption) = tokio::select! {
            written = &mut writing => (written, None),
            interruption = self.renew_lease(claim, stop) => {
                cancel.cancel();
                (writing.await, Some(interruption))
            }
        };
        let deadline = async {
            stop.cancelled().await;
            sleep(SHUTDOWN_DEADLINE).await;
        };
        tokio::select! {
            () = self.finish_attempt(claim, began, written, interruption) => {}
            () = deadline => tracing::warn!("the attempt was not finished before the worker stops: its lease expires"),
        }
    }

    /// Updates the job after an attempt.
    async fn finish_attempt(
        &self,
        claim: &Claim,
        began: Instant,
        written: Result<WrittenFile, WriteFileError>,
        interruption: Option<Interruption>,
    ) {
        match (written, interruption) {
            (Ok(file), None | Some(Interruption::Stopping)) => self.complete_job(claim, began, file).await,
            (Ok(_), Some(Interruption::LeaseLost)) => self.remove(&claim.object_key()).await,
            (Err(error), None) => self.record_failure(claim, error).await,
            (Err(_), Some(Interruption::Stopping)) => {
                // A claim that another slot of this worker has already begun would take the job as soon as it is released. The
                // permit waits for that claim; after the stop signal no slot begins another (`run_slot`).
                let _permit = self.claim_permit.acquire().await;
                tracing::info!("export released: this worker stops");
                log_if_not_updated(self.store.release(claim, now()).await, "release");
            }
            (Err(_), Some(Interruption::LeaseLost)) => {
                tracing::warn!("export abandoned: its lease was lost");
            }
        }
    }

    /// Renews the lease until it is lost or the worker stops.
    async fn renew_lease(&self, claim: &Claim, stop: &CancellationToken) -> Interruption {
        let lease = self.settings.lease;
        // A renewal that fails at once is repeated before the lease ends.
        let interval = lease / 3;
        let mut lease_until = Instant::now() + lease;
        loop {
            tokio::select! {
                () = stop.cancelled() => return Interruption::Stopping,
                () = sleep(interval) => {}
            }
            let sent_at = Instant::now();
            let now = now();
            let renewal = self.store.renew(claim, now, now.plus_millis(millis(lease)));
            let Some(response) = stop.run_until_cancelled(timeout(interval, renewal)).await else {
                return Interruption::Stopping;
            };
            match response {
                Ok(Ok(true)) => lease_until = sent_at + lease,
                Ok(Ok(false)) => return Interruption::LeaseLost,
                Ok(Err(error)) => tracing::warn!(cause = %error, "lease of an export cannot be renewed"),
                Err(_) => tracing::warn!("lease of an export was not renewed in time"),
            }
            if Instant::now() >= lease_until {
                return Interruption::LeaseLost;
            }
        }
    }

    /// Completes the job, which makes its file downloadable.
    async fn complete_job(&self, claim: &Claim, began: Instant, file: WrittenFile) {
        let now = now();
        let file = FinishedFile {
            object_key: claim.object_key(),
            bytes: file.bytes,
            rows: file.rows,
            sha256: file.sha256,
            expires_at: self.settings.file_retention.expires_at(now),
            missing_evaluations: file.missing_evaluations,
        };
        for _ in 0..COMPLETION_TRIES {
            match self.store.complete(claim, file.clone(), now).await {
                Ok(true) => {
                    tracing::info!(bytes = file.bytes, rows = file.rows, "export complete");
                    metrics::completed(claim.kind, file.rows, file.bytes, began.elapsed());
                    report_missing(file.missing_evaluations);
                    return self.remove_earlier_files(claim).await;
                }
                Ok(false) => {
                    tracing::warn!("export was written, but its lease was lost: the file is removed");
                    return self.remove(&file.object_key).await;
                }
                Err(error) => tracing::warn!(cause = %error, "export is written but cannot be completed yet"),
            }
            sleep(COMPLETION_RETRY_DELAY).await;
        }
        // The last commit may have succeeded, so the file stays: either the job is complete, or the next attempt after the
        // lease removes it.
        tracing::error!("export is written but could not be completed: a later attempt writes it again");
    }

    async fn record_failure(&self, claim: &Claim, error: WriteFileError) {
        let is_final = claim.counted_attempt >= self.settings.max_attempts;
        metrics::failed(claim.kind, is_final);
        if is_final {
            tracing::error!(cause = %error, "export failed permanently");
            let message = failure_message(error.user_message(), claim.counted_attempt);
            log_if_not_updated(self.store.fail(claim, &message, now()).await, "fail");
            return self.remove_earlier_files(claim).await;
        }
        let delay = retry_delay(self.settings.retry_delay, claim.counted_attempt);
        tracing::warn!(cause = %error, delay_ms = millis(delay), "export failed: it is tried again");
        let now = now();
        log_if_not_updated(self.store.retry_later(claim, now.plus_millis(millis(delay)), now).await, "retry");
    }

    /// Removes files of earlier attempts; none of them can become the job's file any more.
    async fn remove_earlier_files(&self, claim: &Claim) {
        for key in claim.earlier_object_keys() {
            self.remove(&key).await;
        }
    }

    pub(super) async fn remove(&self, object_key: &str) {
        if let Err(error) = self.objects.delete(object_key).await {
            tracing::warn!(cause = %error, object_key, "unused export file cannot be removed");
        }
    }
}

fn report_missing(missing_evaluations: Option<u64>) {
    metrics::missing(missing_evaluations);
    match missing_evaluations {
        Some(0) => {}
        Some(missing) => tracing::warn!(missing, "export lacks evaluations that had not arrived"),
        None => tracing::warn!("export may lack evaluations: scoring-worker did not say how many there are"),
    }
}

/// Error message of a failed export, for the user.
pub(super) fn failure_message(what: &str, attempts: u32) -> String {
    format!(
        "{what} in {attempts} attempts: create the export again, and if it fails again, \
         give its id to the operator of this service"
    )
}

/// Quadruples after each attempt, so that the attempts together outlast an outage of minutes.
fn retry_delay(first: Duration, counted_attempt: u32) -> Duration {
    let factor = 4_u32.saturating_pow(counted_attempt.saturating_sub(1));
    first.saturating_mul(factor).min(MAX_RETRY_DELAY)
}

/// If the update failed, the lease expires and another attempt follows.
fn log_if_not_updated(result: Result<bool, DatabaseError>, update: &'static str) {
    match result {
        Ok(true) => {}
        Ok(false) => tracing::warn!(update, "export not updated: its lease was lost"),
        Err(error) => tracing::warn!(update, cause = %error, "export not updated"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_grows_up_to_five_minutes() {
        let delay = |counted_attempt| retry_delay(Duration::from_secs(5), counted_attempt).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 40].map(delay), [5, 20, 80, 300, 300, 300]);
    }
}
