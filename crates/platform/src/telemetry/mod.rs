//! Observability: logs (one line per event, text or JSON), metrics for Prometheus, and traces over OTLP. None of them contains
//! personal data.
//!
//! Only these three are process-global, and only the executable starts them.

pub mod metrics;
#[cfg(feature = "distributed")]
pub mod traces;
#[cfg(not(feature = "distributed"))]
#[path = "no_traces.rs"]
pub mod traces;

use std::net::{SocketAddr, TcpListener};

use serde::Deserialize;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::metrics::Metrics;
use crate::settings::no_color;

/// Settings of logs, metrics and traces.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// `text` or `json`.
    pub format: LogFormat,
    /// Log filter: a level, or levels by target such as `info,assay_ingest=debug`.
    pub filter: String,
    /// Listen address of `/metrics`. Empty: metrics are off.
    pub metrics_listen: String,
    /// Base URL of a collector's `/v1/traces` (OTLP over HTTP, protobuf). Empty: tracing is off.
    pub otlp_endpoint: String,
    /// Share of the traces started here that are sampled: 0 to 1. Traces started elsewhere follow their parent's decision.
    pub trace_sample_ratio: f64,
}

/// Shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `telemetry.filter` is invalid.
    #[error("telemetry.filter `{filter}` cannot be read: {reason}")]
    Filter {
        /// Value as configured.
        filter: String,
        /// Cause.
        reason: String,
    },
    /// `telemetry.metrics_listen` is not an address, or cannot be bound.
    #[error("telemetry.metrics_listen `{address}` cannot be used: {reason}")]
    MetricsListen {
        /// Value as configured.
        address: String,
        /// Cause.
        reason: String,
    },
    /// `telemetry.otlp_endpoint` cannot be used.
    #[error("telemetry.otlp_endpoint cannot be used: {reason}")]
    OtlpEndpoint {
        /// Cause.
        reason: String,
    },
    /// `telemetry.trace_sample_ratio` is out of range.
    #[error("telemetry.trace_sample_ratio must be 0 to 1")]
    SampleRatio,
    /// Telemetry was already set up.
    #[error("telemetry is set up already")]
    AlreadySet,
}

/// Telemetry of this process.
pub struct Telemetry {
    metrics: Option<(TcpListener, Metrics)>,
    traces: Option<traces::Provider>,
}

/// Sets up the telemetry of this process; `service` is its name in traces, logs go to standard error. Called once by the
/// executable, within its runtime and before any role starts.
///
/// # Errors
/// When a setting cannot be used or telemetry is set up already.
pub fn start(settings: &TelemetrySettings, service: &'static str) -> Result<Telemetry, TelemetryError> {
    start_log(settings)?;
    Ok(Telemetry {
        metrics: start_metrics(&settings.metrics_listen)?,
        traces: traces::start(settings, service)?,
    })
}

impl Telemetry {
    /// The metrics and the listener of `/metrics`, if configured; once.
    pub(crate) fn take_metrics(&mut self) -> Option<(TcpListener, Metrics)> {
        self.metrics.take()
    }

    /// Sends the remaining spans, within some seconds. Called after all tasks have ended.
    pub async fn shutdown(self) {
        if let Some(traces) = self.traces {
            traces::shutdown(traces).await;
        }
    }
}

fn start_log(settings: &TelemetrySettings) -> Result<(), TelemetryError> {
    // Only levels by target: filters by the fields of spans would need a regex engine.
    let filter: Targets = settings.filter.parse().map_err(|error| TelemetryError::Filter {
        filter: settings.filter.clone(),
        reason: ToString::to_string(&error),
    })?;
    let log = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_span_events(FmtSpan::NONE).with_writer(std::io::stderr);
    let result = match settings.format {
        LogFormat::Text => log.with(lines.with_ansi(use_color())).try_init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true).with_current_span(true)).try_init(),
    };
    result.map_err(|_| TelemetryError::AlreadySet)
}

/// Colors on a terminal, unless `NO_COLOR` is set.
fn use_color() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && !no_color()
}

fn start_metrics(address: &str) -> Result<Option<(TcpListener, Metrics)>, TelemetryError> {
    if address.is_empty() {
        return Ok(None);
    }
    let unusable = |reason: String| TelemetryError::MetricsListen { address: address.to_owned(), reason };
    let parsed: SocketAddr = address.parse().map_err(|_| unusable("it must be IP:PORT".to_owned()))?;
    let listener = TcpListener::bind(parsed).map_err(|error| unusable(error.to_string()))?;
    Ok(Some((listener, Metrics::start()?)))
}
