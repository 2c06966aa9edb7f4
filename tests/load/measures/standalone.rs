//! The standalone: everything in one process, on SQLite. It evaluates while it accepts, and no setting turns that off:
//! its limits, SQLite alone and the distributed stack without its scoring worker, do less than it does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::accepting::{Accepting, CONNECTIONS, imports_to};
use super::{HIGHEST_P99_MS, Pace};
use crate::client::Load;
use crate::conversations::Conversations;
use crate::limits::sqlite::Sqlite;
use crate::processors::listed;
use crate::report::{Goal, Report, Row};
use crate::site::{ReadModel, Servers, Site};

const WARM_UP: Duration = Duration::from_secs(2);
/// Imports that the product's writer commits together at most.
const BATCH: usize = 64;
const SETTLED_WITHIN: Duration = Duration::from_secs(180);

/// One value a round.
#[derive(Default)]
struct Figures {
    accepted: Vec<f64>,
    evaluated: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    distributed: Vec<f64>,
    one: Vec<f64>,
    batches: Vec<f64>,
}

pub async fn measure(
    servers: &Servers,
    conversations: &Arc<Conversations>,
    pace: Pace,
    report: &mut Report,
) -> Result<()> {
    let sqlite = Sqlite::prepare(servers, conversations)?;
    let distributed = Accepting::start(servers, conversations, "beside-standalone").await?;
    let site = Site::standalone(servers, "standalone").await?;
    site.register_agents(&conversations.agents).await?;
    let load = imports_to(&site, conversations, "standalone");
    let mut read_model = ReadModel::of(&site)?;
    load.as_fast_as_possible(WARM_UP).await?.only(202)?;
    settle(&load, &mut read_model)?;
    let mut figures = Figures::default();
    for round in 0..pace.rounds {
        figures.one.push(sqlite.run(1, pace.time)?);
        servers.settle_disk()?;
        figures.distributed.push(distributed.maximum(pace.time).await?.per_second(202));
        servers.settle_disk()?;
        let (usage, count, begin) = (site.usage()?, read_model.count()?, Instant::now());
        let outcome = load.as_fast_as_possible(pace.time).await?.only(202)?;
        let evaluated = (read_model.count()? - count) as f64 / begin.elapsed().as_secs_f64();
        let each = listed(&site.usage()?.micros_each(&usage, outcome.count()));
        let drained = settle(&load, &mut read_model)?;
        report.note(format!(
            "standalone, round {round}: {:.0} imports/s (p50 {:.1} ms, p99 {:.1} ms), {evaluated:.0}/s evaluated meanwhile, \
             the rest within {:.1} s; processor µs an import: {each}",
            outcome.per_second(202), outcome.percentile_ms(0.5), outcome.percentile_ms(0.99), drained.as_secs_f64(),
        ));
        figures.accepted.push(outcome.per_second(202));
        figures.evaluated.push(evaluated);
        figures.batches.push(sqlite.run(BATCH, pace.time)?);
        servers.settle_disk()?;
        let half = load.at_rate(figures.accepted[round] / 2.0, pace.time).await?.only(202)?;
        settle(&load, &mut read_model)?;
        figures.p50.push(half.percentile_ms(0.5));
        figures.p99.push(half.percentile_ms(0.99));
    }
    add(report, &figures);
    Ok(())
}

fn add(report: &mut Report, figures: &Figures) {
    let Figures { accepted, evaluated, p50, p99, distributed, one, batches } = figures;
    let what =
        format!("standalone: imports accepted, {CONNECTIONS} clients, while it evaluates as many as it can");
    let distributed = ("distributed, while nothing is evaluated", &distributed[..]);
    report.add(Row::beside("a", what, "/s", accepted, distributed, Goal::Ratio(1.0)));
    let one = ("SQLite, one import a transaction", &one[..]);
    report.add(Row::beside("a", "the same", "/s", accepted, one, Goal::None));
    let batches = (format!("SQLite, {BATCH} imports a transaction"), &batches[..]);
    report.add(Row::beside("a", "the same", "/s", accepted, (&batches.0, batches.1), Goal::None));
    let what = "standalone: evaluated and in the read model meanwhile";
    report.add(Row::beside("a", what, "/s", evaluated, ("accepted meanwhile", accepted), Goal::None));
    let goal = Goal::AtMost(HIGHEST_P99_MS);
    report.add(Row::alone("a", "standalone: p50 at half of it", "ms", p50, goal));
    report.add(Row::alone("a", "standalone: p99 at half of it", "ms", p99, goal));
}

/// Waits until everything that was sent so far is evaluated: how long that took.
fn settle(load: &Load, read_model: &mut ReadModel) -> Result<Duration> {
    let begin = Instant::now();
    read_model.settle(load.next.load(Ordering::Relaxed), SETTLED_WITHIN)?;
    Ok(begin.elapsed())
}
