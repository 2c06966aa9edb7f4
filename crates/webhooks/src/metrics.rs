//! Metrics of webhooks: `proto-docs/metrics.md`.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

use crate::domain::schedule::RetryDecision;

/// Records a finished attempt.
pub(crate) fn record_attempt(decision: &RetryDecision, elapsed: Duration) {
    let outcome = match decision {
        RetryDecision::Delivered => "delivered",
        RetryDecision::RetryAt(_) => "retried",
        RetryDecision::GivenUp => "given_up",
        RetryDecision::Gone => "gone",
    };
    counter!("assay_webhook_attempts_total", "outcome" => outcome).increment(1);
    histogram!("assay_webhook_attempt_duration_seconds").record(elapsed);
}

/// Describes the metrics. Counters start at zero, so that the first failure shows up as an increase.
pub(crate) fn describe() {
    for outcome in ["delivered", "retried", "given_up", "gone"] {
        counter!("assay_webhook_attempts_total", "outcome" => outcome).increment(0);
    }
    describe_counter!(
        "assay_webhook_attempts_total",
        Unit::Count,
        "Attempts at sending a message: delivered, retried later, given up, or answered 410 (gone)"
    );
    describe_histogram!(
        "assay_webhook_attempt_duration_seconds",
        Unit::Seconds,
        "Duration of an attempt, with or without a response"
    );
}
