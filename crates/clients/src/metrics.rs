//! Metrics of calls between services, documented in `proto-docs/metrics.md`.

use std::time::Duration;

use assay_platform::telemetry::metrics as telemetry;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use reqwest::StatusCode;

/// Records a finished call, with the status of its response.
pub(crate) fn record_call(callee: &'static str, status: Option<StatusCode>, elapsed: Duration) {
    if !telemetry::is_on() {
        return;
    }
    let outcome = match status {
        Some(status) if status.is_server_error() => "error",
        Some(_) => "answered",
        None => "unreachable",
    };
    counter!("assay_service_calls_total", "callee" => callee, "outcome" => outcome).increment(1);
    histogram!("assay_service_call_duration_seconds", "callee" => callee).record(elapsed);
}

/// Records that the circuit of a service opened or closed.
pub(crate) fn record_circuit_open(callee: &'static str, is_open: bool) {
    gauge!("assay_circuit_open", "callee" => callee).set(f64::from(u8::from(is_open)));
}

/// Registers the descriptions. Called when the HTTP client is created.
pub(crate) fn describe() {
    describe_counter!("assay_service_calls_total", Unit::Count, "Calls to our own services");
    describe_histogram!(
        "assay_service_call_duration_seconds",
        Unit::Seconds,
        "From a call to the head of its answer"
    );
    describe_gauge!(
        "assay_circuit_open",
        "1 while a service is considered dead, and calls to it fail at once"
    );
}
