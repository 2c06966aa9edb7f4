//! Lists, summaries and pages of the console over many evaluations, alone and beside imports; and what an import costs with them.

mod imports;
mod latency;
mod pages;
mod queries;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_contracts::ids::TicketId;

use self::latency::Latencies;
use self::pages::Pages;
use self::queries::{FILTERS, SORTS, deep_paths, list_paths, summary_paths};
use self::stored::Stored;
use super::accepting::imports_to;
use super::{Bench, Pace};
use crate::client::Load;
use crate::cluster::Cluster;
use crate::report::{Goal, Report};

const DATABASE: &str = "console";
/// Conversations that are really evaluated; the stored evaluations are variations of theirs.
const SAMPLES: u64 = 200;
/// Rates of imports while lists and pages are read: one at which two processors evaluate everything at once, and one that
/// leaves a growing backlog, for which there is no goal.
const EVALUATED_RATE: f64 = 15.0;
const BACKLOG_RATE: f64 = 300.0;
const IMPORT_CONNECTIONS: usize = 16;
/// Requests of each address.
const REPEATS: usize = 10;
/// Lists from which a conversation is opened: its page shows its position in them, and leads to its neighbours.
const OPENED_FROM: [&str; 3] =
    ["charge=disputed&sort=axis", "search=refund&sort=-confidence", "language=en&axis_max=2.9"];
/// Pages of a list that are read one after the other.
const PAGES: usize = 20;

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("console");
    let cluster = Cluster::distributed(servers, DATABASE).await?;
    cluster.register_agents(&conversations.agents).await?;
    let imports = Arc::new(imports_to(&cluster, conversations, "console", IMPORT_CONNECTIONS));
    imports.closed_loop_count(SAMPLES).await?.only(202)?;
    let stored = Stored::fill(&cluster, servers, DATABASE, SAMPLES, pace.rows).await?;
    report.note(format!(
        "console: {} evaluations stored in {:.0} s by the read model's own writes: {:.0} µs each",
        stored.rows,
        stored.took.as_secs_f64(),
        stored.took.as_secs_f64() * 1e6 / stored.rows as f64
    ));
    let agent = conversations.agents.iter().next().context("no agent takes part in the conversations")?;
    let longest = pages::import_longest(&cluster, agent).await?;
    let pages = Pages::sign_in(&cluster).await?;
    for rate in [None, Some(EVALUATED_RATE), Some(BACKLOG_RATE)] {
        let load = rate.map_or("alone".to_owned(), |rate| format!("beside {rate} imports/s"));
        let reading = read(&cluster, &pages, longest, pace, &load);
        let rows = match rate {
            Some(rate) => while_importing(&imports, rate, reading).await?,
            None => reading.await?,
        };
        for (latencies, what, goal) in rows {
            let goal = if rate == Some(BACKLOG_RATE) { Goal::None } else { goal };
            latencies.note(report, &what);
            report.add(format!("p95 of {what}"), "ms", &[latencies.p95()], goal);
        }
    }
    drop(cluster);
    imports::measure(Bench { servers, conversations, pace }, &stored.samples, report).await
}

/// Latencies of lists, summaries and pages, with their goals.
async fn read(
    cluster: &Cluster,
    pages: &Pages,
    longest: TicketId,
    pace: Pace,
    load: &str,
) -> Result<Vec<(Latencies, String, Goal)>> {
    let list_goal = Goal::AtMost(if pace.rows > 1_000_000 { 80.0 } else { 50.0 });
    let summary_goal = if pace.rows > 1_000_000 { Goal::None } else { Goal::AtMost(100.0) };
    let repeats = if pace.rounds > 1 { REPEATS } else { 2 };
    let lists = Latencies::of_paths(cluster, &list_paths(), repeats).await?;
    let deep = Latencies::of_pages(cluster, &deep_paths(), PAGES).await?;
    let summaries = Latencies::of_paths(cluster, &summary_paths(), repeats).await?;
    let overviews = ["7d", "28d", "quarter", "year", "all"].map(|name| format!("/console?period={name}"));
    let overviews = pages.latencies(&overviews, repeats).await?;
    let list_pages =
        ["/console/conversations", "/console/conversations?charge=disputed&sort=axis"].map(str::to_owned);
    let list_pages = pages.latencies(&list_pages, repeats).await?;
    let conversation = format!("/console/conversations/{longest}");
    let opened = OPENED_FROM.map(|list| format!("{conversation}?{list}"));
    let conversation = pages.latencies(&[conversation], 5 * repeats).await?;
    let opened = pages.latencies(&opened, 5 * repeats).await?;
    let asked = format!("{} filters and {} orders", FILTERS.len(), SORTS.len());
    Ok(vec![
        (lists, format!("lists of {asked}, {load}"), list_goal),
        (deep, format!("pages 1 to {PAGES} of lists, 100 rows each, {load}"), list_goal),
        (summaries, format!("summaries of {} filters in four periods, {load}", FILTERS.len()), summary_goal),
        (overviews, format!("the page with the overview of five periods, {load}"), summary_goal),
        (list_pages, format!("the page with the list, {load}"), Goal::AtMost(100.0)),
        (conversation, format!("the page of a conversation with 50 messages, {load}"), Goal::AtMost(50.0)),
        // It finds two pages of the list, of one row each.
        (opened, format!("the same page, opened from three lists, {load}"), Goal::AtMost(100.0)),
    ])
}

/// Runs `reading` while imports arrive.
async fn while_importing<T>(
    imports: &Arc<Load>,
    rate: f64,
    reading: impl Future<Output = Result<T>>,
) -> Result<T> {
    let importing = async {
        loop {
            imports.open_loop(rate, Duration::from_secs(5)).await?.only(202)?;
        }
    };
    // `importing` ends only with an error.
    tokio::select! {
        found = reading => found,
        failed = importing => failed,
    }
}
