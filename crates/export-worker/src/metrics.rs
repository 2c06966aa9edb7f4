//! Metrics of export jobs, documented in `proto-docs/metrics.md`.

use std::time::Duration;

use assay_contracts::export::ExportKind;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

/// `elapsed` is the duration of the successful attempt.
pub(crate) fn completed(kind: ExportKind, rows: u64, bytes: u64, elapsed: Duration) {
    ended(kind, "complete");
    counter!("assay_export_rows_total", "kind" => kind.as_str()).increment(rows);
    counter!("assay_export_bytes_total", "kind" => kind.as_str()).increment(bytes);
    histogram!("assay_export_duration_seconds", "kind" => kind.as_str()).record(elapsed);
}

/// `is_final`: no further attempt follows.
pub(crate) fn failed(kind: ExportKind, is_final: bool) {
    ended(kind, if is_final { "failed" } else { "retried" });
}

/// Why a file of the object store was left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOverReason {
    /// It is of an upload whose process died.
    Unfinished,
    /// It is of another attempt at the job.
    Attempt,
    /// The job failed, or its file was due to be removed.
    Ended,
    /// There is no such job.
    Unknown,
}

impl LeftOverReason {
    const ALL: [Self; 4] = [Self::Unfinished, Self::Attempt, Self::Ended, Self::Unknown];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Attempt => "attempt",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

pub(crate) fn swept(reason: LeftOverReason) {
    counter!("assay_export_swept_files_total", "reason" => reason.as_str()).increment(1);
}

/// Counts a completed export whose file lacks evaluations; `None`: their number is unknown.
pub(crate) fn missing(evaluations: Option<u64>) {
    let reason = match evaluations {
        Some(0) => return,
        Some(_) => "missing",
        None => "unknown",
    };
    counter!("assay_export_incomplete_total", "reason" => reason).increment(1);
}

fn ended(kind: ExportKind, outcome: &'static str) {
    counter!("assay_export_attempts_total", "kind" => kind.as_str(), "outcome" => outcome).increment(1);
}

/// Registers the metrics. Counters start at zero, so that `increase()` sees the first failure.
pub(crate) fn describe() {
    for kind in ExportKind::ALL {
        for outcome in ["complete", "retried", "failed"] {
            counter!("assay_export_attempts_total", "kind" => kind.as_str(), "outcome" => outcome)
                .increment(0);
        }
    }
    for reason in ["missing", "unknown"] {
        counter!("assay_export_incomplete_total", "reason" => reason).increment(0);
    }
    for reason in LeftOverReason::ALL {
        counter!("assay_export_swept_files_total", "reason" => reason.as_str()).increment(0);
    }
    describe_counter!(
        "assay_export_incomplete_total",
        Unit::Count,
        "Complete exports whose file lacks evaluations, or for which they could not be counted"
    );
    describe_counter!(
        "assay_export_swept_files_total",
        Unit::Count,
        "Files removed from the object store that no export has: of an upload whose process died, of another attempt, of a \
         failed export or one whose file was due to be removed, of no export at all"
    );
    describe_counter!(
        "assay_export_attempts_total",
        Unit::Count,
        "Attempts at writing the file of an export: complete, retried later, or failed for good"
    );
    describe_counter!("assay_export_rows_total", Unit::Count, "Rows of files that were completed");
    describe_counter!("assay_export_bytes_total", Unit::Bytes, "Bytes of files that were completed");
    describe_histogram!(
        "assay_export_duration_seconds",
        Unit::Seconds,
        "From the beginning of an attempt to the file that can be downloaded, with the wait for evaluations"
    );
}
