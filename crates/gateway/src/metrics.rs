//! What the gateway counts: `proto-docs/metrics.md`.

use metrics::{Unit, counter, describe_counter};

/// A conversation was submitted, and answered.
pub(crate) fn imported(status: u16) {
    let outcome = match status {
        202 => "accepted",
        409 => "duplicate",
        400..500 => "refused",
        _ => "unavailable",
    };
    counter!("assay_imports_total", "outcome" => outcome).increment(1);
}

/// Says what is counted here. Counters begin at zero, so that the first event is seen as one.
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
