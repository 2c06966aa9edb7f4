//! Writes the file of a job: a thread reads the snapshot, this task writes it to the object store, and a bounded
//! channel between them keeps memory constant.

use assay_export::domain::csv;
use assay_export::domain::lease::Claim;
use assay_export::store::{Selection, SnapshotError, line_channel};
use assay_platform::objects::{ObjectError, ObjectWriter};
use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Duration, Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Worker;

/// How long cleaning up after a failed attempt may take: a worker that stops gives its job back afterwards.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(5);

/// Between two looks at how far the read model is: at first, and after a while.
const EVALUATIONS_POLL: Duration = Duration::from_millis(50);
const LONGEST_EVALUATIONS_POLL: Duration = Duration::from_secs(1);

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteFileError {
    /// The rows cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The file cannot be stored.
    #[error(transparent)]
    Objects(#[from] ObjectError),
    /// The attempt was given up.
    #[error("the attempt was given up")]
    GivenUp,
}

impl WriteFileError {
    /// The same for the person who asked for the export: no cause, no path, no name of a library.
    pub(super) const fn in_plain_words(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "the evaluations could not be read",
            Self::Objects(_) => "the file could not be stored",
            Self::GivenUp => "the file could not be written",
        }
    }
}

/// A file that is written and not shown yet.
pub(super) struct WrittenFile {
    /// Size in bytes.
    pub(super) bytes: u64,
    /// Lines, the header not counted.
    pub(super) rows: u64,
    /// SHA-256 of the content, lower-case hexadecimal.
    pub(super) sha256: String,
}

impl Worker {
    /// Writes the file of a job under the key of its attempt. Nothing appears there unless all of it was written.
    ///
    /// # Errors
    /// When reading or writing fails, or `give_up` is cancelled, whatever the object store is doing then.
    pub(super) async fn write_file(
        &self,
        claim: &Claim,
        give_up: &CancellationToken,
    ) -> Result<WrittenFile, WriteFileError> {
        unless(give_up, self.await_evaluations(claim)).await?;
        let place = async { self.places.acquire().await.map_err(|_| WriteFileError::GivenUp) };
        let _place = unless(give_up, place).await?;
        let key = claim.object_key();
        let mut writer = unless(give_up, self.objects.create(&key)).await?;
        let rows = match unless(give_up, self.copy(claim, &mut writer)).await {
            Ok(rows) => rows,
            Err(error) => {
                in_time(abort(writer)).await;
                return Err(error);
            }
        };
        match unless(give_up, writer.finish()).await {
            Ok(written) => Ok(WrittenFile { bytes: written.bytes, rows, sha256: written.sha256 }),
            Err(error) => {
                // Whether the file was published is unknown when the answer did not come.
                in_time(async {
                    abort(writer).await;
                    self.remove(&key).await;
                })
                .await;
                Err(error)
            }
        }
    }

    /// Waits until the read model holds every evaluation that there was when the export was created. What does not arrive
    /// in time (its event is a dead letter, say) is left to a later export.
    async fn await_evaluations(&self, claim: &Claim) -> Result<(), WriteFileError> {
        let deadline = Instant::now() + self.settings.evaluations_wait;
        let mut pause = EVALUATIONS_POLL;
        loop {
            let missing = self.store.missing_evaluations(claim.id).await.map_err(SnapshotError::from)?;
            if missing == Some(0) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                // `None`: the export service could not find out how many there shall be.
                tracing::warn!(?missing, "export is written without evaluations that have not arrived");
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_EVALUATIONS_POLL);
        }
    }

    async fn copy(&self, claim: &Claim, writer: &mut ObjectWriter) -> Result<u64, WriteFileError> {
        let selection =
            Selection { organization_id: claim.organization_id, kind: claim.kind, filters: claim.filters };
        writer.write(csv::header(claim.kind).into()).await?;
        let (sink, lines) = line_channel();
        let reading = async { Ok(self.store.copy_lines(selection, sink).await?) };
        // Whichever fails first ends the other: a reader without a receiver stops by itself.
        let (rows, ()) = tokio::try_join!(reading, receive(lines, writer))?;
        Ok(rows)
    }
}

/// What `work` comes to, unless `give_up` is cancelled before.
async fn unless<T, E: Into<WriteFileError>>(
    give_up: &CancellationToken,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, WriteFileError> {
    match give_up.run_until_cancelled(work).await {
        Some(outcome) => outcome.map_err(Into::into),
        None => Err(WriteFileError::GivenUp),
    }
}

async fn receive(mut lines: Receiver<Bytes>, writer: &mut ObjectWriter) -> Result<(), WriteFileError> {
    while let Some(chunk) = lines.recv().await {
        writer.write(chunk).await?;
    }
    Ok(())
}

async fn in_time(clean_up: impl Future<Output = ()>) {
    if timeout(CLEAN_UP_DEADLINE, clean_up).await.is_err() {
        tracing::warn!("unfinished file of an export was not removed in time");
    }
}

async fn abort(writer: ObjectWriter) {
    if let Err(error) = writer.abort().await {
        tracing::warn!(cause = %error, "unfinished file of an export cannot be removed");
    }
}
