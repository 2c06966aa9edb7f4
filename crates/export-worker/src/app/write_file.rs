//! Writes the file of a job: a thread reads the snapshot, this task writes it to the object store, and a bounded
//! channel between them keeps memory constant.

use assay_export::domain::csv;
use assay_export::domain::lease::Claim;
use assay_export::store::{FileSelection, SnapshotError, line_channel};
use assay_platform::objects::{ObjectError, ObjectWriter, WrittenObject};
use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Worker;

/// Deadline for the clean-up of a failed attempt: a stopping worker releases its job afterwards.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(5);

/// Polling interval of the read model: doubles from the first to the maximum.
const EVALUATIONS_POLL: Duration = Duration::from_millis(50);
const MAX_EVALUATIONS_POLL: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(super) enum WriteFileError {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Objects(#[from] ObjectError),
    #[error("the attempt was cancelled")]
    Cancelled,
}

impl WriteFileError {
    /// Message for the user, without internals.
    pub(super) const fn user_message(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "the evaluations could not be read",
            Self::Objects(_) => "the file could not be stored",
            Self::Cancelled => "the file could not be written",
        }
    }
}

/// A written file whose job is not complete yet.
pub(super) struct WrittenFile {
    pub(super) bytes: u64,
    /// Number of lines without the header.
    pub(super) rows: u64,
    /// Lower-case hexadecimal.
    pub(super) sha256: String,
    /// Evaluations that had not arrived; `None`: they could not be counted.
    pub(super) missing_evaluations: Option<u64>,
}

impl Worker {
    /// Writes the file of a job under the object key of its attempt, atomically.
    ///
    /// # Errors
    /// When reading or writing fails, or as soon as `cancel` is cancelled.
    pub(super) async fn write_file(
        &self,
        claim: &Claim,
        cancel: &CancellationToken,
    ) -> Result<WrittenFile, WriteFileError> {
        unless_cancelled(cancel, self.await_evaluations(claim)).await?;
        let permit = self.write_permits.acquire(claim.organization_id);
        let permit = async { permit.await.ok_or(WriteFileError::Cancelled) };
        let _permit = unless_cancelled(cancel, permit).await?;
        // Before the snapshot: an evaluation that arrives in between is reported as missing although the file has it. The
        // reverse cannot happen.
        let missing = async { Ok::<_, SnapshotError>(self.store.missing_evaluations(claim.id).await?) };
        let missing_evaluations = unless_cancelled(cancel, missing).await?;
        let key = claim.object_key();
        let mut writer = unless_cancelled(cancel, self.objects.create(&key)).await?;
        let rows = match unless_cancelled(cancel, self.copy(claim, &mut writer)).await {
            Ok(rows) => rows,
            Err(error) => {
                clean_up_in_time(abort(writer)).await;
                return Err(error);
            }
        };
        match unless_cancelled(cancel, writer.finish()).await {
            Ok(WrittenObject { bytes, sha256 }) => {
                Ok(WrittenFile { bytes, rows, sha256, missing_evaluations })
            }
            Err(error) => {
                // The object may exist although the response was lost.
                clean_up_in_time(async {
                    abort(writer).await;
                    self.remove(&key).await;
                })
                .await;
                Err(error)
            }
        }
    }

    /// Waits until the read model reaches the target sequence of the job. Evaluations that do not arrive in time (because
    /// their event is a dead letter) are left to a later export; the job says how many.
    async fn await_evaluations(&self, claim: &Claim) -> Result<(), WriteFileError> {
        let deadline = Instant::now() + self.settings.evaluations_wait;
        let mut pause = EVALUATIONS_POLL;
        loop {
            let lag = self.store.evaluation_lag(claim.id).await.map_err(SnapshotError::from)?;
            if lag == Some(0) || Instant::now() >= deadline {
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_EVALUATIONS_POLL);
        }
    }

    async fn copy(&self, claim: &Claim, writer: &mut ObjectWriter) -> Result<u64, WriteFileError> {
        let selection = FileSelection {
            organization_id: claim.organization_id,
            kind: claim.kind,
            filters: claim.filters.clone(),
        };
        writer.write(csv::header(claim.kind).into()).await?;
        let (sink, lines) = line_channel();
        let reading = async { Ok(self.store.copy_lines(selection, sink).await?) };
        // The first failure ends both: the reader stops when its receiver is dropped.
        let (rows, ()) = tokio::try_join!(reading, receive(lines, writer))?;
        Ok(rows)
    }
}

/// Runs `work` until it is done or `cancel` is cancelled.
async fn unless_cancelled<T, E: Into<WriteFileError>>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, WriteFileError> {
    match cancel.run_until_cancelled(work).await {
        Some(outcome) => outcome.map_err(Into::into),
        None => Err(WriteFileError::Cancelled),
    }
}

async fn receive(mut lines: Receiver<Bytes>, writer: &mut ObjectWriter) -> Result<(), WriteFileError> {
    while let Some(chunk) = lines.recv().await {
        writer.write(chunk).await?;
    }
    Ok(())
}

async fn clean_up_in_time(clean_up: impl Future<Output = ()>) {
    if timeout(CLEAN_UP_DEADLINE, clean_up).await.is_err() {
        tracing::warn!("unfinished file of an export was not removed in time");
    }
}

async fn abort(writer: ObjectWriter) {
    if let Err(error) = writer.abort().await {
        tracing::warn!(cause = %error, "unfinished file of an export cannot be removed");
    }
}
