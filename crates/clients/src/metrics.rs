//! What is counted of calls to our own services: `proto-docs/metrics.md`.

use std::time::Duration;

use assay_platform::telemetry::metrics as telemetry;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use reqwest::StatusCode;

/// A call has come to its end: an answer, or none.
pub(crate) fn called(callee: &'static str, status: Option<StatusCode>, elapsed: Duration) {
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

/// The circuit of a service has opened (calls fail at once) or closed.
pub(crate) fn circuit(callee: &'static str, is_open: bool) {
    gauge!("assay_circuit_open", "callee" => callee).set(f64::from(u8::from(is_open)));
}

/// Says what is counted here. Called when a client is made.
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
