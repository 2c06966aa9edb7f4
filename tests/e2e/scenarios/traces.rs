//! Tracing: one trace spans the import request to the row in the read model.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::LockExt as _;
use assay_testkit::stub_server::{StubServer, respond};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use reqwest::Method;

use crate::harness::{Api, Kind, PrivateStack, conversation, until};

/// The trace of the caller.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
/// The gateway's span of the requests of [`traced`].
const TRACED_REQUEST: &str = "GET /v1/evaluations/exports";

/// Every span from the gateway to the read model belongs to the caller's trace; so do the logs.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    let collector = Collector::start()?;
    let url = format!("http://{}", collector.server.address());
    let settings = [
        ("ASSAY_TELEMETRY__OTLP_ENDPOINT", url.as_str()),
        ("ASSAY_TELEMETRY__FILTER", "info,assay_platform=debug"),
        ("ASSAY_TELEMETRY__FORMAT", "json"),
    ];
    stack.start_with(&settings).await?;
    let api = stack.api()?;
    let request = api
        .request(Method::POST, "/v1/assess")
        .header("traceparent", format!("00-{TRACE}-{CALLER}-01"))
        .json(&conversation("traced"));
    api.reply(request).await?.expect_status(202)?;

    let path = [
        "POST /v1/assess",
        "POST ingest",
        "POST /internal/v1/conversations",
        "process conversation.accepted.v1",
        "process conversation.evaluated.v1",
    ];
    let spans = until("one chain of spans from the import to the read model", async || {
        Ok(chain(&collector.all_spans(), CALLER, &path))
    })
    .await
    .with_context(|| format!("{:?}", collector.described(TRACE)))?;
    for span in spans {
        ensure!(span.end_time_unix_nano >= span.start_time_unix_nano, "ends before it begins: {span:?}");
        ensure!(hex::encode(&span.trace_id) == TRACE, "belongs to another trace: {span:?}");
    }
    let service = if stack.kind() == Kind::Standalone { "assay" } else { "assay-gateway" };
    ensure!(collector.services().contains(&service.to_owned()), "{:?}", collector.services());
    let logs = stack.logs()?;
    let answered = logs.lines().find(|line| line.contains("/v1/assess") && line.contains("answered"));
    ensure!(answered.is_some_and(|line| line.contains(TRACE)), "no log line has the trace: {answered:?}");
    untraced_calls_begin_a_trace(&api, &collector).await?;
    stack.restart_with("gateway", &[("ASSAY_TELEMETRY__TRACE_SAMPLE_RATIO", "0.5")]).await?;
    callers_do_not_decide_about_sampling(&stack.api()?, &collector).await
}

/// A chain of spans with these names: the first is a child of `parent`, each other a child of the span before. All spans of
/// a name are tried, because a repeated call or delivery has several.
fn chain(spans: &[Span], parent: &str, names: &[&str]) -> Option<Vec<Span>> {
    let Some((name, further)) = names.split_first() else { return Some(Vec::new()) };
    let is_next = |span: &&Span| span.name == *name && hex::encode(&span.parent_span_id) == parent;
    spans.iter().filter(is_next).find_map(|child| {
        let mut chain = chain(spans, &hex::encode(&child.span_id), further)?;
        chain.insert(0, child.clone());
        Some(chain)
    })
}

/// The configured half of the requests is recorded, whether or not the caller has set the flag `sampled`.
async fn callers_do_not_decide_about_sampling(api: &Api, collector: &Collector) -> Result<()> {
    const REQUESTS: u32 = 30;
    for (flags, first) in [("01", 0x1000), ("00", 0x2000)] {
        for number in first..first + REQUESTS {
            traced(api, number, flags).await?;
        }
        // The gateway sends its spans in their order: when one of a later request has arrived, those before it have.
        let mut later = first + REQUESTS;
        until("a later trace", async || {
            traced(api, later, flags).await?;
            later += 1;
            Ok((first + REQUESTS..later).any(|number| collector.has(number)).then_some(()))
        })
        .await?;
        let recorded = (first..first + REQUESTS).filter(|number| collector.has(*number)).count();
        ensure!(
            (1..REQUESTS as usize).contains(&recorded),
            "with the flags {flags}: {recorded} of {REQUESTS}"
        );
    }
    Ok(())
}

async fn traced(api: &Api, trace: u32, flags: &str) -> Result<()> {
    let request = api.request(Method::GET, "/v1/evaluations/exports");
    let request = request.header("traceparent", format!("00-{trace:032x}-{CALLER}-{flags}"));
    api.reply(request).await?.expect_status(200)
}

/// Without a caller's trace a new one is started.
async fn untraced_calls_begin_a_trace(api: &Api, collector: &Collector) -> Result<()> {
    let before = collector.traces();
    api.get("/v1/evaluations/exports").await?.expect_status(200)?;
    until("a new trace", async || Ok((collector.traces() > before).then_some(()))).await
}

/// A collector (OTLP over HTTP, protobuf).
struct Collector {
    server: StubServer,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    fn start() -> Result<Self> {
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        let server = StubServer::start(move |request, connection| {
            ensure!(request.line.starts_with("POST /v1/traces "), "{}", request.line);
            shared.locked().push(ExportTraceServiceRequest::decode(request.body.as_slice())?);
            respond(connection, "200 OK", "")
        })?;
        Ok(Self { server, received })
    }

    /// Whether the gateway's span of a traced request has arrived. Each process sends its own spans in their order, so spans of
    /// other services say nothing about those of the gateway.
    fn has(&self, trace: u32) -> bool {
        let trace = format!("{trace:032x}");
        self.all_spans()
            .iter()
            .any(|span| hex::encode(&span.trace_id) == trace && span.name == TRACED_REQUEST)
    }

    /// Name, id and parent of the spans of a trace.
    fn described(&self, trace: &str) -> Vec<(String, String, String)> {
        let spans = self.all_spans().into_iter().filter(|span| hex::encode(&span.trace_id) == trace);
        spans.map(|span| (span.name, hex::encode(span.span_id), hex::encode(span.parent_span_id))).collect()
    }

    /// How many traces there are.
    fn traces(&self) -> usize {
        let spans = self.all_spans().into_iter().map(|span| span.trace_id);
        spans.collect::<BTreeSet<_>>().len()
    }

    fn services(&self) -> Vec<String> {
        let received = self.received.locked();
        let resources = received.iter().flat_map(|request| &request.resource_spans);
        let resources = resources.filter_map(|spans| spans.resource.as_ref());
        let attributes = resources.flat_map(|resource| &resource.attributes);
        attributes.filter(|one| one.key == "service.name").map(|one| text(&one.value)).collect()
    }

    fn all_spans(&self) -> Vec<Span> {
        let received = self.received.locked();
        let resources = received.iter().flat_map(|request| &request.resource_spans);
        resources.flat_map(|spans| &spans.scope_spans).flat_map(|spans| spans.spans.clone()).collect()
    }
}

fn text(value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>) -> String {
    use opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue;
    match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(StringValue(text)) => text.clone(),
        _ => String::new(),
    }
}
