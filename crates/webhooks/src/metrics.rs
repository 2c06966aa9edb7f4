//! What is counted of webhooks: `proto-docs/metrics.md`.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

use crate::domain::schedule::Verdict;

/// An attempt has come to its end.
pub(crate) fn attempted(verdict: &Verdict, elapsed: Duration) {
    let outcome = match verdict {
        Verdict::Delivered => "delivered",
        Verdict::RetryAt(_) => "retried",
        Verdict::GivenUp => "given_up",
        Verdict::Gone => "gone",
    };
    counter!("assay_webhook_attempts_total", "outcome" => outcome).increment(1);
    histogram!("assay_webhook_attempt_duration_seconds").record(elapsed);
}

/// Says what is counted here. Counters begin at zero, so that the first failure is seen as one.
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
        "How long an endpoint takes to answer, or not to"
    );
}
