//! Metrics for Prometheus, on a separate port for Prometheus alone. Reference: `proto-docs/metrics.md`. Each crate names and
//! describes its metrics in a file `metrics.rs`.
//!
//! Labels have low cardinality: never ids, addresses, or values chosen by callers. No label has a name that Prometheus or its
//! operator adds to every target (`service`, `job`, `instance`, `pod`, …).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::TelemetryError;
use crate::runtime::{CheckOutcome, Phase, Tasks, periodically};

/// How often new histogram samples are moved into their buckets.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often readiness is evaluated for its metrics.
const READINESS_INTERVAL: Duration = Duration::from_secs(10);

/// Upper bounds of buckets of durations, in seconds: a request answered from memory takes less than a millisecond, an export minutes.
const DURATION_BUCKETS: &[f64] = &[
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
];

/// Upper bounds of buckets of scoring durations, in seconds: most conversations take some tens of milliseconds.
const SCORING_DURATION_BUCKETS: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0];

/// Whether a recorder is installed; there is one per process.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The metrics of this process. Clones share the recorder.
#[derive(Clone)]
pub(crate) struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Installs the recorder. Without it, recording a metric is almost free.
    pub(super) fn start() -> Result<Self, TelemetryError> {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), DURATION_BUCKETS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(
                    Matcher::Full("assay_scoring_duration_seconds".to_owned()),
                    SCORING_DURATION_BUCKETS,
                )
            });
        let handle =
            builder.and_then(PrometheusBuilder::install_recorder).map_err(|_| TelemetryError::AlreadySet)?;
        IS_ON.store(true, Ordering::Relaxed);
        describe();
        gauge!("assay_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self { handle })
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }

    /// Spawns the task that moves histogram samples into their buckets.
    pub(crate) fn spawn_upkeep(&self, tasks: &mut Tasks) {
        let handle = self.handle.clone();
        tasks.spawn_periodic(
            Phase::Background,
            "metrics upkeep",
            UPKEEP_INTERVAL,
            handle,
            |handle| async move {
                handle.run_upkeep();
            },
        );
    }
}

/// Whether metrics are enabled; work that only they need can be skipped otherwise.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Spawns a task that exports the readiness of `role` and the outcome of each check as gauges, for alerts without a probe.
pub(crate) fn spawn_readiness_metrics(tasks: &mut Tasks, role: &'static str) {
    if !is_on() {
        return;
    }
    let readiness = tasks.readiness().clone();
    tasks.spawn(Phase::Background, format!("{role} readiness"), move |stop| {
        periodically("readiness", READINESS_INTERVAL, stop, move || {
            let readiness = readiness.clone();
            async move {
                let report = readiness.report().await;
                gauge!("assay_ready", "role" => role).set(f64::from(u8::from(report.ready)));
                for (check, outcome) in report.checks {
                    let passed = f64::from(u8::from(outcome == CheckOutcome::Ok));
                    gauge!("assay_check_holds", "role" => role, "check" => check).set(passed);
                }
            }
        })
    });
}

/// Records a response, `elapsed` after the head of its request was received.
pub(crate) fn record_request(
    role: &'static str,
    method: &'static str,
    route: String,
    status: u16,
    elapsed: Duration,
) {
    let counted = counter!("assay_http_requests_total", "role" => role, "method" => method, "route" => route.clone(),
        "status" => status.to_string());
    counted.increment(1);
    histogram!("assay_http_request_duration_seconds", "role" => role, "method" => method, "route" => route)
        .record(elapsed);
}

fn describe() {
    describe_gauge!("assay_build_info", "1, and the version that runs");
    describe_gauge!("assay_ready", "1 while the role answers its requests, or consumes; 0 otherwise");
    describe_gauge!("assay_check_holds", "1 while this check of the role's readiness holds; 0 otherwise");
    describe_counter!("assay_http_requests_total", Unit::Count, "Requests that were answered");
    describe_histogram!(
        "assay_http_request_duration_seconds",
        Unit::Seconds,
        "From the head of a request to the head of its answer"
    );
    describe_gauge!(
        "assay_database_connections_used",
        Unit::Count,
        "Connections that are in use, or taken and being made"
    );
    describe_gauge!("assay_database_connections_limit", Unit::Count, "Connections at most");
    describe_histogram!(
        "assay_database_wait_seconds",
        Unit::Seconds,
        "How long work waited for a connection"
    );
    describe_gauge!(
        "assay_clock_skew_seconds",
        Unit::Seconds,
        "How far the clock of the process is ahead of the database's, in seconds; negative: behind. Only with PostgreSQL"
    );
    describe_counter!(
        "assay_database_unavailable_total",
        Unit::Count,
        "Work that got no connection in time, or no answer"
    );
}
