//! Lists and summaries of many evaluations, beside imports: the latency of every filter.

mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_contracts::evaluations::encode_query;
use reqwest::Method;

use self::stored::{PERIOD, Stored};
use super::Pace;
use crate::client::Load;
use crate::cluster::{Cluster, Servers};
use crate::conversations::Conversations;
use crate::report::{Goal, Report, Row};

const DATABASE: &str = "console";
/// Conversations that are actually evaluated; stored evaluations are made of theirs.
const SAMPLES: u64 = 500;
/// Imports per second meanwhile.
const IMPORTS_A_SECOND: f64 = 300.0;
const IMPORT_CONNECTIONS: usize = 16;
/// Requests of each address.
const REPEATS: usize = 20;

/// One filter of each kind, and combinations; rare values, too.
const FILTERS: &[&[(&str, &str)]] = &[
    &[],
    &[("charge", "disputed")],
    &[("charge", "disputed"), ("charge", "review"), ("ai_tool", "front")],
    &[("charge_reason", "REOPENED")],
    &[("involvement", "no_ai")],
    &[("resolution", "not_resolved"), ("resolved_by", "none")],
    &[("basis", "silence_only"), ("band", "good")],
    &[("handoff", "requested_not_completed"), ("band", "poor")],
    &[("axis_max", "1.4")],
    &[("axis_min", "4.5"), ("charge", "disputed")],
    &[("resolution_accuracy_band", "poor"), ("interaction_effort_band", "excellent")],
    &[("handoff_smoothness_max", "1.2"), ("language", "de")],
    &[("confidence_max", "0.3")],
    &[("flag", "POSSIBLE_PROMPT_INJECTION")],
    &[("flag", "SHORT_CONVERSATION"), ("scorer", "builtin")],
    &[("ai_tool", "none")],
    &[("agent", "none"), ("language", "en")],
    &[("source", "rare"), ("charge", "disputed")],
    &[("status", "failed")],
    &[("external_id", "stored-4711")],
    &[("subject", "refund")],
    &[("subject", "refund word17")],
    &[("search", "word23")],
];
const SORTS: [&str; 4] = ["-started_at", "axis", "-confidence", "charge"];

pub async fn measure(
    servers: &Servers,
    conversations: &Arc<Conversations>,
    pace: Pace,
    report: &mut Report,
) -> Result<()> {
    let cluster = Cluster::distributed(servers, DATABASE).await?;
    cluster.register_agents(&conversations.agents).await?;
    let imports = Arc::new(Load {
        address: cluster.gateway().to_owned(),
        connections: IMPORT_CONNECTIONS,
        requests: conversations.imports("/v1/assess", "console", {
            let key = cluster.key();
            move || key.to_owned()
        }),
        next: Arc::new(AtomicU64::new(0)),
    });
    imports.closed_loop_count(SAMPLES).await?.only(202)?;
    let stored = Stored::fill(&cluster, servers, DATABASE, SAMPLES, pace.rows).await?;
    report.note(format!(
        "console: {} evaluations stored in {:.0} s by the read model's own writes: {:.0} µs each",
        stored.rows,
        stored.took.as_secs_f64(),
        stored.took.as_secs_f64() * 1e6 / stored.rows as f64
    ));
    let goal = if pace.rows > 1_000_000 { 80.0 } else { 50.0 };
    for (load, beside) in [("alone", false), ("beside imports", true)] {
        let lists = all(&cluster, &imports, beside, &list_paths()).await?;
        worst(report, "lists", load, &lists);
        let what = format!("p95 of lists of {} filters and {} orders, {load}", FILTERS.len(), SORTS.len());
        report.add(Row::without_limit("e", what, "ms", &[p95(&lists)], Goal::AtMost(goal)));
        let summaries = all(&cluster, &imports, beside, &summary_paths()).await?;
        worst(report, "summaries", load, &summaries);
        let what = format!("p95 of summaries of {} filters in four periods, {load}", FILTERS.len());
        report.add(Row::without_limit("e", what, "ms", &[p95(&summaries)], Goal::AtMost(100.0)));
    }
    Ok(())
}

fn list_paths() -> Vec<String> {
    let path = |filter: &[(&str, &str)], sort: &str| {
        let pairs = filter.iter().copied().chain([("sort", sort), ("limit", "50")]);
        format!("/v1/evaluations?{}", encode_query(pairs))
    };
    FILTERS.iter().flat_map(|filter| SORTS.map(|sort| path(filter, sort))).collect()
}

/// The overview of a week, four weeks, a quarter and a year.
fn summary_paths() -> Vec<String> {
    let path = |filter: &[(&str, &str)], days: i64| {
        let (from, to) = ((PERIOD.1 - days * 86_400_000).to_string(), PERIOD.1.to_string());
        let shown = [("by", "ai_tool"), ("by", "agent"), ("step", "week"), ("compare", "previous")];
        let period = [("from", from.as_str()), ("to", to.as_str())];
        let pairs: Vec<(&str, &str)> = filter.iter().copied().chain(period).chain(shown).collect();
        format!("/v1/evaluations/summary?{}", encode_query(pairs))
    };
    FILTERS.iter().flat_map(|filter| [7, 28, 91, 365].map(|days| path(filter, days))).collect()
}

/// Latencies of every path in milliseconds.
async fn all(
    cluster: &Cluster,
    imports: &Arc<Load>,
    beside: bool,
    paths: &[String],
) -> Result<BTreeMap<String, Vec<f64>>> {
    let asking = async {
        let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..REPEATS {
            for path in paths {
                let began = Instant::now();
                let (status, answer) = cluster.call(Method::GET, path, None).await?;
                ensure!(status == 200, "{path}: {status} {answer}");
                found.entry(path.clone()).or_default().push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        Ok(found)
    };
    if !beside {
        return asking.await;
    }
    let importing = async {
        loop {
            imports.open_loop(IMPORTS_A_SECOND, Duration::from_secs(5)).await?.only(202)?;
        }
    };
    tokio::select! {
        found = asking => found,
        failed = importing => failed,
    }
}

fn p95(found: &BTreeMap<String, Vec<f64>>) -> f64 {
    percentile(found.values().flatten().copied().collect(), 0.95)
}

fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Notes the five slowest addresses.
fn worst(report: &mut Report, what: &str, load: &str, found: &BTreeMap<String, Vec<f64>>) {
    let mut slowest: Vec<(f64, &String)> =
        found.iter().map(|(path, values)| (percentile(values.clone(), 0.95), path)).collect();
    slowest.sort_by(|one, other| other.0.total_cmp(&one.0));
    let slowest: Vec<String> =
        slowest.iter().take(5).map(|(ms, path)| format!("{ms:.0} ms {path}")).collect();
    let median = percentile(found.values().flatten().copied().collect(), 0.5);
    report.note(format!("{what} {load}: p50 {median:.1} ms; slowest p95: {}", slowest.join("; ")));
}
