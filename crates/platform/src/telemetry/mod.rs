//! Logs: one line an event, as text for people or JSON for machines. Personal data never appears in them.

use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::settings::minds_colours;

/// How logs are written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// `text` or `json`.
    pub format: LogFormat,
    /// What is logged: `info`, or directives such as `info,assay_ingest=debug`.
    pub filter: String,
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

/// The log could not be set up.
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
    /// A log was set up before.
    #[error("the log is set up already")]
    AlreadySet,
}

/// Sets up the log of this process, to standard error. Called once, by the executable.
///
/// # Errors
/// When the filter cannot be read or a log is set up already.
pub fn start(settings: &TelemetrySettings) -> Result<(), TelemetryError> {
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
