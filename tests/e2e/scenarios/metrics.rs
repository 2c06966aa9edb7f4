//! Prometheus metrics: counted correctly, and named and described as in `proto-docs/metrics.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_platform::http_client::client_builder;
use serde_json::json;

use crate::harness::{PrivateStack, Stack, conversation, until};

const DOCUMENT: &str = "proto-docs/metrics.md";

/// Imports, refusals, evaluations and a file are counted; every metric is documented.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    // Every process takes a free port and logs it.
    stack.start_with(&[("ASSAY_TELEMETRY__METRICS_LISTEN", "127.0.0.1:0")]).await?;
    let api = stack.api()?;
    let ticket = api.import(&conversation("counted")).await?;
    api.post("/v1/assess", &conversation("counted")).await?.problem(409, "duplicate-import")?;
    api.post("/v1/assess", &json!({})).await?.problem(400, "invalid-request")?;
    for key in [None, Some("asy_short"), Some("a-key-with-enough-characters-that-was-never-created")] {
        let reply = stack.api_with(key)?.get("/v1/agents").await?;
        ensure!(reply.status == 401, "{key:?}: {}", reply.status);
    }
    api.evaluation(&ticket).await?;
    api.export(&json!({"kind": "axis"})).await?;

    let expected = [
        (r#"assay_imports_total{outcome="accepted"}"#, 1.0),
        (r#"assay_imports_total{outcome="duplicate"}"#, 1.0),
        (r#"assay_imports_total{outcome="refused"}"#, 1.0),
        (r#"assay_authentication_failures_total{reason="missing"}"#, 1.0),
        (r#"assay_authentication_failures_total{reason="malformed"}"#, 1.0),
        (r#"assay_authentication_failures_total{reason="unknown"}"#, 1.0),
        (r#"assay_authentication_failures_total{reason="unavailable"}"#, 0.0),
        (r#"assay_key_renewal_failures_total"#, 0.0),
        (r#"assay_http_requests_total{role="gateway",method="POST",route="/v1/assess",status="409"}"#, 1.0),
        (r#"assay_events_handled_total{queue="scoring-worker.conversation-accepted",outcome="done"}"#, 1.0),
        (r#"assay_events_handled_total{queue="scoring-worker.conversation-accepted",outcome="dead"}"#, 0.0),
        (r#"assay_events_published_total{topic="conversation.evaluated.v1"}"#, 1.0),
        (r#"assay_evaluations_total{status="not_applicable",scorer="builtin"}"#, 1.0),
        (r#"assay_scoring_duration_seconds_count"#, 1.0),
        (r#"assay_export_attempts_total{kind="axis",outcome="complete"}"#, 1.0),
        (r#"assay_export_rows_total{kind="axis"}"#, 1.0),
        (r#"assay_outbox_events{database="ingest",state="waiting"}"#, 0.0),
        (r#"assay_ready{role="gateway"}"#, 1.0),
        (r#"assay_check_holds{role="ingest",check="ingest database"}"#, 1.0),
    ];
    until("the expected metrics", async || {
        let scraped = scrape(stack).await?;
        let holds = |(name, value): &(&str, f64)| scraped.samples.get(*name) == Some(value);
        Ok(expected.iter().all(holds).then_some(()))
    })
    .await
    .with_context(|| format!("{expected:?}"))?;
    check_documented(&scrape(stack).await?)
}

/// Metrics of all processes together.
#[derive(Default)]
struct Scrape {
    samples: BTreeMap<String, f64>,
    /// Type and help of every metric.
    described: BTreeMap<String, (String, String)>,
}

async fn scrape(stack: &Stack) -> Result<Scrape> {
    let mut scraped = Scrape::default();
    for (name, log) in stack.read_logs()? {
        // The last start is the running one.
        let line = log.lines().rev().find(|line| line.contains("metrics are served"));
        let address = line.and_then(|line| line.rsplit_once("address=")).map(|(_, address)| address.trim());
        let address = address.with_context(|| format!("{name} does not say where its metrics are"))?;
        let reply = client_builder().build()?.get(format!("http://{address}/metrics")).send().await?;
        ensure!(reply.status() == 200, "{name}: {}", reply.status());
        for line in reply.text().await?.lines() {
            scraped.add_line(line)?;
        }
    }
    Ok(scraped)
}

impl Scrape {
    /// Values of the same sample in several processes are added up.
    fn add_line(&mut self, line: &str) -> Result<()> {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').context("help")?;
            self.described.entry(name.to_owned()).or_default().1 = help.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').context("type")?;
            self.described.entry(name.to_owned()).or_default().0 = kind.to_owned();
        } else if let Some((sample, value)) = line.rsplit_once(' ') {
            *self.samples.entry(sample.to_owned()).or_default() += value.parse::<f64>()?;
        }
        Ok(())
    }
}

/// The document lists every metric that is served, with the same description. Not checked: that every documented metric exists,
/// since some have no sample in this scenario, and are not served.
fn check_documented(scraped: &Scrape) -> Result<()> {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(DOCUMENT);
    let document = fs::read_to_string(document)?;
    for (name, (kind, help)) in &scraped.described {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.with_context(|| format!("{DOCUMENT} lacks {name}: {help}"))?;
        // `| metric | type | labels | meaning |`: the first cell is what precedes the first bar.
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        ensure!(cells.get(2) == Some(&kind.as_str()), "{name} is a {kind}: {row}");
        ensure!(cells.get(4) == Some(&help.as_str()), "{name} means \"{help}\": {row}");
    }
    Ok(())
}
