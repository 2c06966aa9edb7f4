//! The standalone: everything in one process, on SQLite. It evaluates while it accepts, unlike its baselines: SQLite alone, and
//! the distributed stack without its scoring worker. It accepts a hundred times as many as it evaluates, so there is always a
//! backlog.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::accepting::{Accepting, CONNECTIONS, imports_to};
use super::{Bench, MAX_P99_MS};
use crate::baselines::sqlite::Sqlite;
use crate::cluster::{Cluster, ReadModel};
use crate::cpu::listed;
use crate::report::{Goal, Report};

const WARM_UP: Duration = Duration::from_secs(2);
/// Upper limit of the product's group commit.
const BATCH: usize = 64;

/// One value per round.
#[derive(Default)]
struct Figures {
    accepted: Vec<f64>,
    evaluated: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    distributed: Vec<f64>,
    /// SQLite alone, with one import per transaction and with batches.
    one: Vec<f64>,
    batches: Vec<f64>,
}

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("standalone");
    let sqlite = Sqlite::prepare(servers, conversations)?;
    let distributed = Accepting::start(servers, conversations, "beside-standalone").await?;
    let cluster = Cluster::standalone(servers, "standalone").await?;
    cluster.register_agents(&conversations.agents).await?;
    let load = imports_to(&cluster, conversations, "standalone", CONNECTIONS);
    let mut read_model = ReadModel::of(&cluster)?;
    load.closed_loop(WARM_UP).await?.only(202)?;
    let mut figures = Figures::default();
    for round in 0..pace.rounds {
        figures.one.push(sqlite.imports_per_second(1, pace.time)?);
        servers.settle_disk()?;
        figures.distributed.push(distributed.maximum(pace.time).await?.per_second(202));
        servers.settle_disk()?;
        let (usage, count, begin) = (cluster.usage()?, read_model.count()?, Instant::now());
        let outcome = load.closed_loop(pace.time).await?.only(202)?;
        let evaluated = (read_model.count()? - count) as f64 / begin.elapsed().as_secs_f64();
        let each = listed(&cluster.usage()?.micros_each(&usage, outcome.count()));
        report.note(format!(
            "standalone, round {round}: {:.0} imports/s (p50 {:.1} ms, p99 {:.1} ms), {evaluated:.0}/s evaluated meanwhile; \
             CPU µs per import: {each}",
            outcome.per_second(202),
            outcome.percentile_ms(0.5),
            outcome.percentile_ms(0.99),
        ));
        figures.accepted.push(outcome.per_second(202));
        figures.evaluated.push(evaluated);
        figures.batches.push(sqlite.imports_per_second(BATCH, pace.time)?);
        servers.settle_disk()?;
        let half = load.open_loop(figures.accepted[round] / 2.0, pace.time).await?.only(202)?;
        figures.p50.push(half.percentile_ms(0.5));
        figures.p99.push(half.percentile_ms(0.99));
    }
    add(report, &figures);
    Ok(())
}

fn add(report: &mut Report, figures: &Figures) {
    let Figures { accepted, evaluated, p50, p99, distributed, one, batches } = figures;
    let what = format!("standalone: imports accepted, {CONNECTIONS} clients, while it evaluates what it can");
    let distributed = ("distributed, while nothing is evaluated", &distributed[..]);
    report.compare(what, "/s", accepted, distributed, Goal::Ratio(1.0));
    let one = ("SQLite, one import per transaction", &one[..]);
    report.compare("the same", "/s", accepted, one, Goal::None);
    let batches = (format!("SQLite, {BATCH} imports per transaction"), &batches[..]);
    report.compare("the same", "/s", accepted, (&batches.0, batches.1), Goal::None);
    let what = "standalone: evaluated and in the read model meanwhile";
    report.compare(what, "/s", evaluated, ("accepted meanwhile", accepted), Goal::None);
    let goal = Goal::AtMost(MAX_P99_MS);
    report.add("standalone: p50 at half of the maximum rate", "ms", p50, goal);
    report.add("standalone: p99 at half of the maximum rate", "ms", p99, goal);
}
