//! Traces over OTLP: one trace from the request that submits a conversation to the last consumer of its events. A span starts
//! only with a request, a call or a delivery; W3C Trace Context carries it between processes, in headers and in events.
//! Attributes follow the semantic conventions of OpenTelemetry.
//!
//! Headers and compression of the exporter follow the environment variables of the OpenTelemetry specification
//! (`OTEL_EXPORTER_OTLP_HEADERS`, …).

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use url::Url;

pub use opentelemetry::trace::SpanKind;

use super::{TelemetryError, TelemetrySettings};
use crate::runtime::{blocking, random_bytes};

/// Timeout of a request to the collector.
const EXPORT_DEADLINE: Duration = Duration::from_secs(5);

/// Timeout of the final export at shutdown.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(3);

/// One per process; unset when tracing is off.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Share of traces that are sampled, also when this process records none.
static SAMPLE_RATIO: OnceLock<f64> = OnceLock::new();

/// A span, from its creation until it is dropped. Empty and free when tracing is off.
#[derive(Debug, Default)]
pub struct Span(Option<opentelemetry_sdk::trace::Span>);

/// Starts a span. Its parent is the span that `traceparent` (W3C Trace Context) names, possibly of another process; without
/// one it starts a trace. `name` is called only when tracing is on.
pub fn span(kind: SpanKind, traceparent: Option<&str>, name: impl FnOnce() -> String) -> Span {
    let Some(tracer) = TRACER.get() else { return Span(None) };
    let parent = traceparent.and_then(remote_parent).unwrap_or_default();
    Span(Some(tracer.build_with_context(SpanBuilder::from_name(name()).with_kind(kind), &parent)))
}

impl Span {
    /// `traceparent` for children of this span; `None` when tracing is off.
    pub fn traceparent(&self) -> Option<String> {
        let context = self.0.as_ref()?.span_context();
        let (trace, span, flags) = (context.trace_id(), context.span_id(), context.trace_flags());
        Some(format!("00-{trace}-{span}-{flags:02x}"))
    }

    /// Adds an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Sets the error status. `reason` is a constant, never data of a caller.
    pub fn fail(&mut self, reason: &'static str) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(reason));
        }
    }
}

/// The `traceparent` of a caller outside of the installation, with a sampling decision of our own: otherwise callers decide how
/// much the collector has to store. The decision is random, not derived from the trace id, which the caller has chosen.
pub fn with_own_sampling(traceparent: &str) -> String {
    let is_sampled = draw_sampling(SAMPLE_RATIO.get().copied().unwrap_or_default());
    let without_flags = traceparent.rsplit_once('-').map_or(traceparent, |(rest, _flags)| rest);
    format!("{without_flags}-{:02x}", u8::from(is_sampled))
}

/// True at random, for the share `ratio` of calls.
fn draw_sampling(ratio: f64) -> bool {
    let u32_values = f64::from(u32::MAX) + 1.0;
    random_bytes().is_ok_and(|bytes| f64::from(u32::from_be_bytes(bytes)) < ratio * u32_values)
}

/// Context of a `traceparent`, whose format was checked on receipt.
fn remote_parent(traceparent: &str) -> Option<Context> {
    let mut parts = traceparent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, TraceState::default());
    context.is_valid().then(|| Context::new().with_remote_span_context(context))
}

pub(super) type Provider = SdkTracerProvider;

/// Starts the background export of spans, if a collector is configured.
pub(super) fn start(
    settings: &TelemetrySettings,
    service: &'static str,
) -> Result<Option<Provider>, TelemetryError> {
    if !(0.0..=1.0).contains(&settings.trace_sample_ratio) {
        return Err(TelemetryError::SampleRatio);
    }
    SAMPLE_RATIO.get_or_init(|| settings.trace_sample_ratio);
    if settings.otlp_endpoint.is_empty() {
        return Ok(None);
    }
    let unusable = |reason: String| TelemetryError::OtlpEndpoint { reason };
    let address = traces_address(&settings.otlp_endpoint).map_err(unusable)?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(address)
        .with_timeout(EXPORT_DEADLINE)
        .with_http_client(CollectorClient::new().map_err(|error| unusable(error.to_string()))?)
        .build()
        .map_err(|error| unusable(error.to_string()))?;
    let resource = Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.trace_sample_ratio)));
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_sampler(sampler)
        .with_batch_exporter(exporter)
        .build();
    TRACER.set(provider.tracer("assay")).map_err(|_| TelemetryError::AlreadySet)?;
    Ok(Some(provider))
}

/// `/v1/traces` below the base URL of the collector (OTLP specification).
fn traces_address(endpoint: &str) -> Result<String, String> {
    let url = Url::parse(endpoint).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(format!("{}/v1/traces", endpoint.trim_end_matches('/'))),
        other => Err(format!("it must begin with http:// or https://, not {other}:")),
    }
}

pub(super) async fn shutdown(provider: Provider) {
    let flushed = blocking(move || provider.shutdown_with_timeout(SHUTDOWN_DEADLINE)).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::warn!("the last traces could not be sent");
    }
}

/// HTTP client of the exporter. The exporter's thread has no runtime, so requests run on that of the process.
#[derive(Debug)]
struct CollectorClient {
    client: reqwest::Client,
    runtime: Handle,
}

impl CollectorClient {
    fn new() -> Result<Self, reqwest::Error> {
        let client = crate::http_client::client_builder().timeout(EXPORT_DEADLINE).no_proxy().build()?;
        Ok(Self { client, runtime: Handle::current() })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    #[allow(clippy::disallowed_methods, reason = "the exporter's thread is not one of the runtime")]
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let response = client.execute(request).await?;
            let status = response.status();
            let body = response.bytes().await?;
            Ok::<_, reqwest::Error>((status, body))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_address_is_below_the_collector_address() {
        for (endpoint, address) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("https://collector.example/otlp/", "https://collector.example/otlp/v1/traces"),
        ] {
            assert_eq!(traces_address(endpoint).as_deref(), Ok(address));
        }
        for endpoint in ["collector:4318", "grpc://collector:4317", "not an address"] {
            assert!(traces_address(endpoint).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn parent_is_read_from_traceparent_and_zeros_are_ignored() {
        let context = remote_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        let span = context.span();
        let parent = span.span_context();
        assert_eq!(parent.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(parent.is_sampled() && parent.is_remote());
        let zeros = "00-00000000000000000000000000000000-0000000000000000-01";
        assert!(remote_parent(zeros).is_none());
    }

    #[test]
    fn own_sampling_keeps_all_but_the_flags() {
        let begin = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        for flags in ["00", "01", "ff"] {
            // No ratio is set in this process: nothing is sampled.
            assert_eq!(with_own_sampling(&format!("{begin}-{flags}")), format!("{begin}-00"));
        }
    }

    #[test]
    fn sampling_follows_the_ratio() {
        let sampled = |ratio| (0..10_000).filter(|_| draw_sampling(ratio)).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 10_000));
        // Six standard deviations are 260.
        assert!((2_240..=2_760).contains(&sampled(0.25)));
    }

    #[test]
    fn span_is_empty_and_unnamed_when_tracing_is_off() {
        let span = span(SpanKind::Server, None, || panic!("the name is not needed"));
        assert_eq!(span.traceparent(), None);
    }
}
