//! Metrics for Prometheus, on a port of their own that nobody but it should reach. Which there are, and what they mean, is in
//! `proto-docs/metrics.md`; who counts something names and describes it in a file `metrics.rs` of the crate.
//!
//! Labels have few values: never ids, addresses, or anything that callers choose. None is named as those that Prometheus or its
//! operator give to every target (`service`, `job`, `instance`, `pod`, …).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::TelemetryError;
use crate::runtime::{BoxError, CheckOutcome, Phase, Tasks, periodically};

/// What histograms took in since the last time is sorted into their buckets this often.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// How often readiness is asked for without anybody asking.
const READINESS_INTERVAL: Duration = Duration::from_secs(10);

/// Upper bounds of durations: a request answered from memory takes less than a millisecond, an export minutes.
const SECONDS: &[f64] = &[
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
];

/// Upper bounds of evaluations: most take some tens of milliseconds.
const SCORING_SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0];

/// Whether somebody counts: the recorder itself is one for each process.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The metrics of this process. Cloned freely; all clones are one.
#[derive(Clone)]
pub(crate) struct Metrics {
    handle: PrometheusHandle,
}

impl Metrics {
    /// Counts from now on. Without this, counting costs next to nothing.
    pub(super) fn start() -> Result<Self, TelemetryError> {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(
                    Matcher::Full("assay_scoring_duration_seconds".to_owned()),
                    SCORING_SECONDS,
                )
            });
        let handle =
            builder.and_then(PrometheusBuilder::install_recorder).map_err(|_| TelemetryError::AlreadySet)?;
        IS_ON.store(true, Ordering::Relaxed);
        describe();
        gauge!("assay_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self { handle })
    }

    /// What was counted, in Prometheus' text format.
    pub(crate) fn render(&self) -> String {
        self.handle.render()
    }

    /// Sorts what histograms took in into their buckets, again and again until the process ends.
    pub(crate) fn keep_up(&self, tasks: &mut Tasks) {
        let handle = self.handle.clone();
        tasks.spawn(Phase::Relay, "metrics upkeep", move |stop| {
            periodically("metrics upkeep", UPKEEP_INTERVAL, stop, move || {
                handle.run_upkeep();
                async { Ok::<(), BoxError>(()) }
            })
        });
    }
}

/// Whether metrics are wanted: work that only they need is left undone otherwise.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Shows the readiness of the role `name` and of each of its checks, so that an alert does not need a probe of its own.
pub(crate) fn watch_readiness(tasks: &mut Tasks, name: &'static str) {
    if !is_on() {
        return;
    }
    let readiness = tasks.readiness().clone();
    tasks.spawn(Phase::Relay, format!("{name} readiness"), move |stop| {
        periodically("readiness", READINESS_INTERVAL, stop, move || {
            let readiness = readiness.clone();
            async move {
                let report = readiness.report().await;
                gauge!("assay_ready", "role" => name).set(f64::from(u8::from(report.ready)));
                for (check, outcome) in report.checks {
                    let holds = f64::from(u8::from(outcome == CheckOutcome::Ok));
                    gauge!("assay_check_holds", "role" => name, "check" => check).set(holds);
                }
                Ok::<(), BoxError>(())
            }
        })
    });
}

/// A request was answered: its head was received `elapsed` ago, and the head of its answer is on its way.
pub(crate) fn request_answered(
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
    describe_counter!(
        "assay_database_unavailable_total",
        Unit::Count,
        "Work that got no connection in time, or no answer"
    );
}
