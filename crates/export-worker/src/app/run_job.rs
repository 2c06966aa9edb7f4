//! Runs one job: keeps hold of it while its file is written, and decides what becomes of it.

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

/// Attempts at showing a file that is written: a short outage of the database must not cost the whole work.
const SHOW_ATTEMPTS: u32 = 5;
const SHOW_PAUSE: Duration = Duration::from_millis(500);

/// How long a worker that was asked to stop goes on settling its job: with the cleaning up of its file before, this stays
/// below the time that a process has for stopping.
const LAST_DEADLINE: Duration = Duration::from_secs(10);

/// Longest pause between two attempts at a job.
const LONGEST_RETRY_DELAY: Duration = Duration::from_secs(300);

/// Why a job is given up half-way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interruption {
    /// This worker stops.
    Stopping,
    /// Another worker has the job, or will soon.
    HoldLost,
}

impl Worker {
    /// Runs a job to its end, to its next attempt, or until `stop`.
    pub(super) async fn run_job(&self, claim: Claim, stop: &CancellationToken) {
        let span = tracing::info_span!("export", export = %claim.id, attempt = claim.attempt);
        self.run(&claim, stop).instrument(span).await;
    }

    async fn run(&self, claim: &Claim, stop: &CancellationToken) {
        let began = Instant::now();
        let give_up = CancellationToken::new();
        let writing = self.write_file(claim, &give_up);
        tokio::pin!(writing);
        let (written, interruption) = tokio::select! {
            written = &mut writing => (written, None),
            interruption = self.keep_hold(claim, stop) => {
                give_up.cancel();
                (writing.await, Some(interruption))
            }
        };
        let too_late = async {
            stop.cancelled().await;
            sleep(LAST_DEADLINE).await;
        };
        tokio::select! {
            () = self.settle(claim, began, written, interruption) => {}
            () = too_late => tracing::warn!("export not settled before this worker stops: its hold ends by itself"),
        }
    }

    /// Does with a job what follows from the end of its attempt.
    async fn settle(
        &self,
        claim: &Claim,
        began: Instant,
        written: Result<WrittenFile, WriteFileError>,
        interruption: Option<Interruption>,
    ) {
        match (written, interruption) {
            (Ok(file), None | Some(Interruption::Stopping)) => self.show(claim, began, file).await,
            (Ok(_), Some(Interruption::HoldLost)) => self.remove(&claim.object_key()).await,
            (Err(error), None) => self.note_failure(claim, error).await,
            (Err(_), Some(Interruption::Stopping)) => {
                tracing::info!("export given back: this worker stops");
                settled(self.store.hand_back(claim, now()).await, "given back");
            }
            (Err(_), Some(Interruption::HoldLost)) => {
                tracing::warn!("export given up: another worker has it, or this one could not hold on to it");
            }
        }
    }

    /// Renews the hold until it is lost or the worker stops.
    async fn keep_hold(&self, claim: &Claim, stop: &CancellationToken) -> Interruption {
        let lease = self.settings.lease;
        let pause = lease / 3;
        let mut held_until = Instant::now() + lease;
        loop {
            tokio::select! {
                () = stop.cancelled() => return Interruption::Stopping,
                () = sleep(pause) => {}
            }
            let asked_at = Instant::now();
            let now = now();
            let heartbeat = self.store.heartbeat(claim, now, now.plus_millis(millis(lease)));
            let Some(answer) = stop.run_until_cancelled(timeout(pause, heartbeat)).await else {
                return Interruption::Stopping;
            };
            match answer {
                Ok(Ok(true)) => held_until = asked_at + lease,
                Ok(Ok(false)) => return Interruption::HoldLost,
                Ok(Err(error)) => tracing::warn!(cause = %error, "heartbeat of an export failed"),
                Err(_) => tracing::warn!("heartbeat of an export was not answered in time"),
            }
            if Instant::now() >= held_until {
                return Interruption::HoldLost;
            }
        }
    }

    /// Lets the world see a file that is written.
    async fn show(&self, claim: &Claim, began: Instant, file: WrittenFile) {
        let now = now();
        let file = FinishedFile {
            object_key: claim.object_key(),
            bytes: file.bytes,
            rows: file.rows,
            sha256: file.sha256,
            expires_at: self.settings.file_retention.end_from(now),
        };
        for _ in 0..SHOW_ATTEMPTS {
            match self.store.complete(claim, file.clone(), now).await {
                Ok(true) => {
                    tracing::info!(bytes = file.bytes, rows = file.rows, "export complete");
                    metrics::completed(claim.kind, file.rows, file.bytes, began.elapsed());
                    return self.remove_earlier_files(claim).await;
                }
                Ok(false) => {
                    tracing::warn!("export was written, but another worker has it now: the file is removed");
                    return self.remove(&file.object_key).await;
                }
                Err(error) => tracing::warn!(cause = %error, "export is written but cannot be shown yet"),
            }
            sleep(SHOW_PAUSE).await;
        }
        // Whether the last attempt was committed is unknown, so the file stays: either it is shown, or the attempt that
        // follows when the hold has ended removes it.
        tracing::error!("export is written but could not be shown: it is written again by a later attempt");
    }

    async fn note_failure(&self, claim: &Claim, error: WriteFileError) {
        let for_good = claim.try_number >= self.settings.max_attempts;
        metrics::failed(claim.kind, for_good);
        if for_good {
            tracing::error!(cause = %error, "export failed for good");
            let message = failure_message(error.in_plain_words(), claim.try_number);
            settled(self.store.fail(claim, &message, now()).await, "failed");
            return self.remove_earlier_files(claim).await;
        }
        let delay = retry_delay(self.settings.retry_delay, claim.try_number);
        tracing::warn!(cause = %error, delay_ms = millis(delay), "export failed: it is tried again");
        let now = now();
        settled(self.store.retry_later(claim, now.plus_millis(millis(delay)), now).await, "put off");
    }

    /// What attempts before this one may have left behind; none of them can be shown any more.
    async fn remove_earlier_files(&self, claim: &Claim) {
        for key in claim.earlier_object_keys() {
            self.remove(&key).await;
        }
    }

    pub(super) async fn remove(&self, object_key: &str) {
        if let Err(error) = self.objects.delete(object_key).await {
            tracing::warn!(cause = %error, object_key, "file of an export that nobody needs cannot be removed");
        }
    }
}

/// The message of a failed export, for the person who asked for it.
pub(super) fn failure_message(what: &str, attempts: u32) -> String {
    format!(
        "{what} in {attempts} attempts: create the export again, and if it fails again, \
         give its id to whoever operates this service"
    )
}

/// Four times as long after each attempt, so that the attempts together outlast an outage of minutes.
fn retry_delay(first: Duration, try_number: u32) -> Duration {
    let factor = 4_u32.saturating_pow(try_number.saturating_sub(1));
    first.saturating_mul(factor).min(LONGEST_RETRY_DELAY)
}

/// When a job cannot be settled, its hold ends by itself, and another attempt follows.
fn settled(result: Result<bool, DatabaseError>, what: &'static str) {
    match result {
        Ok(true) => {}
        Ok(false) => tracing::warn!(what, "export could not be settled: another worker has it"),
        Err(error) => tracing::warn!(what, cause = %error, "export could not be settled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_five_minutes() {
        let delay = |try_number| retry_delay(Duration::from_secs(5), try_number).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 40].map(delay), [5, 20, 80, 300, 300, 300]);
    }
}
