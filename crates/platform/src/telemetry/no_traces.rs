//! The interface of `traces.rs` in a build without the feature `distributed`: no trace is recorded.

use super::{TelemetryError, TelemetrySettings};

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that is answered.
    Server,
    /// A call of a service.
    Client,
    /// A delivery of the bus.
    Consumer,
}

/// Records nothing.
#[derive(Debug, Default)]
pub struct Span(());

/// An empty span.
pub fn span(_: SpanKind, _traceparent: Option<&str>, _name: impl FnOnce() -> String) -> Span {
    Span(())
}

impl Span {
    /// `None`: tracing is off.
    pub fn traceparent(&self) -> Option<String> {
        None
    }

    /// Does nothing.
    pub fn set<T>(&mut self, _key: &'static str, _value: T) {}

    /// Does nothing.
    pub fn fail(&mut self, _reason: &'static str) {}
}

/// The `traceparent` of a caller outside of the installation, not sampled.
pub fn with_own_sampling(traceparent: &str) -> String {
    let without_flags = traceparent.rsplit_once('-').map_or(traceparent, |(rest, _flags)| rest);
    format!("{without_flags}-00")
}

/// Without values: there is no exporter to shut down.
pub(super) enum Provider {}

pub(super) fn start(
    settings: &TelemetrySettings,
    _service: &'static str,
) -> Result<Option<Provider>, TelemetryError> {
    if !(0.0..=1.0).contains(&settings.trace_sample_ratio) {
        return Err(TelemetryError::SampleRatio);
    }
    if settings.otlp_endpoint.is_empty() {
        return Ok(None);
    }
    Err(TelemetryError::OtlpEndpoint { reason: format!("it needs OTLP, {}", crate::NOT_IN_THIS_BUILD) })
}

#[expect(clippy::unused_async, reason = "as in a build with traces")]
pub(super) async fn shutdown(provider: Provider) {
    match provider {}
}
