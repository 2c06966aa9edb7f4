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

/// Why a request was not authenticated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AuthenticationFailure {
    /// No API key, or several.
    Missing,
    /// Not the form of an API key, or a wrong checksum.
    Malformed,
    /// Unknown, expired or revoked.
    Unknown,
    /// The key could not be looked up.
    Unavailable,
}

impl AuthenticationFailure {
    const ALL: [Self; 4] = [Self::Missing, Self::Malformed, Self::Unknown, Self::Unavailable];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Unavailable => "unavailable",
        }
    }
}

pub(crate) fn count_authentication_failure(reason: AuthenticationFailure) {
    counter!("assay_authentication_failures_total", "reason" => reason.as_str()).increment(1);
}

/// Counts a renewal of a key's grant that failed, so that the known grant is used longer.
pub(crate) fn count_failed_renewal() {
    counter!("assay_key_renewal_failures_total").increment(1);
}

/// Describes the metrics. Counters start at zero, so that the first increment is visible as an increase.
pub(crate) fn describe() {
    for outcome in ["accepted", "duplicate", "refused", "unavailable"] {
        counter!("assay_imports_total", "outcome" => outcome).increment(0);
    }
    for reason in AuthenticationFailure::ALL {
        counter!("assay_authentication_failures_total", "reason" => reason.as_str()).increment(0);
    }
    counter!("assay_key_renewal_failures_total").increment(0);
    describe_counter!(
        "assay_authentication_failures_total",
        Unit::Count,
        "Requests that were not authenticated: without a key, with one of a wrong form or checksum, with an unknown, expired \
         or revoked one, or with one that could not be looked up"
    );
    describe_counter!(
        "assay_key_renewal_failures_total",
        Unit::Count,
        "Failed renewals of known API keys, whose grants are used up to 30 seconds longer"
    );
    describe_counter!(
        "assay_imports_total",
        Unit::Count,
        "Conversations that were submitted, by how they were answered"
    );
}
