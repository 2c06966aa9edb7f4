//! What a process tells of itself: a log (one line an event, as text for people or JSON for machines), metrics for
//! Prometheus, and traces for any collector that speaks OTLP. Personal data never appears in any of them.
//!
//! These three are the only things that belong to the process rather than to a role: whoever logs, counts or traces
//! names what it is about. Only the executable starts them.

pub mod metrics;
pub mod traces;

use std::net::{SocketAddr, TcpListener};

use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use self::metrics::Metrics;
use crate::runtime::Tasks;
use crate::settings::minds_colours;
use crate::web::serve_metrics;

/// How logs are written, and where metrics and traces are to be had.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// `text` or `json`.
    pub format: LogFormat,
    /// What is logged: `info`, or directives such as `info,assay_ingest=debug`.
    pub filter: String,
    /// Address at which Prometheus finds `/metrics`. Empty: nothing is counted.
    pub metrics_listen: String,
    /// Address below which `/v1/traces` of a collector lies (OTLP over HTTP, protobuf). Empty: nothing is traced.
    pub otlp_endpoint: String,
    /// The share of the traces begun here that are recorded: 0 to 1. Traces that others began are recorded when they are.
    pub trace_sample_ratio: f64,
}

/// Shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Telemetry could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `telemetry.filter` cannot be read.
    #[error("telemetry.filter `{filter}` cannot be read: {reason}")]
    Filter {
        /// As configured.
        filter: String,
        /// What is wrong with it.
        reason: String,
    },
    /// `telemetry.metrics_listen` is no address, or cannot be used.
    #[error("telemetry.metrics_listen `{address}` cannot be used: {reason}")]
    MetricsListen {
        /// As configured.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// `telemetry.otlp_endpoint` cannot be used.
    #[error("telemetry.otlp_endpoint cannot be used: {reason}")]
    OtlpEndpoint {
        /// What is wrong with it.
        reason: String,
    },
    /// `telemetry.trace_sample_ratio` is no share.
    #[error("telemetry.trace_sample_ratio must be 0 to 1")]
    SampleRatio,
    /// Telemetry was set up before.
    #[error("telemetry is set up already")]
    AlreadySet,
}

/// The telemetry of this process, for as long as it runs.
pub struct Telemetry {
    metrics: Option<(TcpListener, Metrics)>,
    traces: Option<SdkTracerProvider>,
}

/// Sets up the telemetry of this process, which calls itself `service` in traces; logs go to standard error. Called once, by
/// the executable, within its runtime and before any role starts.
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
    /// Serves `/metrics`, where it is wanted.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub fn serve_metrics(&mut self, tasks: &mut Tasks) -> std::io::Result<()> {
        match self.metrics.take() {
            Some((listener, metrics)) => serve_metrics(tasks, listener, metrics),
            None => Ok(()),
        }
    }

    /// Sends what was traced and not sent yet; takes some seconds at most. To be called when everything else has ended.
    pub async fn finish(self) {
        if let Some(traces) = self.traces {
            traces::finish(traces).await;
        }
    }
}

fn start_log(settings: &TelemetrySettings) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_new(&settings.filter).map_err(|error| TelemetryError::Filter {
        filter: settings.filter.clone(),
        reason: error.to_string(),
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stderr);
    let result = match settings.format {
        LogFormat::Text => builder.with_ansi(has_colours()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(true).try_init(),
    };
    result.map_err(|_| TelemetryError::AlreadySet)
}

/// For people at a terminal who do not mind.
fn has_colours() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr()) && !minds_colours()
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
