//! The gateway's metrics: `proto-docs/metrics.md`.

use metrics::{Unit, counter, describe_counter};

/// Counts a submitted conversation by the status of its answer.
pub(crate) fn count_import(status: u16) {
    let outcome = match status {
        202 => "accepted",
        409 => "duplicate",
        400..500 => "refused",
        _ => "unavailable",
    };
    counter!("assay_imports_total", "outcome" => outcome).increment(1);
}

/// Describes the metrics. Counters start at zero, so that the first increment is visible as one.
pub(crate) fn describe() {
    for outcome in ["accepted", "duplicate", "refused", "unavailable"] {
        counter!("assay_imports_total", "outcome" => outcome).increment(0);
    }
    describe_counter!(
        "assay_imports_total",
        Unit::Count,
        "Conversations that were submitted, by how they were answered"
    );
}
