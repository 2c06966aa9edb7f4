//! Imports: maximum rate, and latency at half of the maximum rate.

use anyhow::Result;

use super::accepting::{Accepting, CONNECTIONS};
use super::{Bench, MAX_P99_MS};
use crate::baselines::pgbench::{Pgbench, Shape};
use crate::cpu::listed;
use crate::report::{Goal, Report};

const ONE_BY_ONE: Shape = Shape { clients: 16, imports_per_transaction: 1 };
const TWENTY: Shape = Shape { clients: 4, imports_per_transaction: 20 };

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("imports");
    let pgbench = Pgbench::prepare(servers, conversations)?;
    let Accepting { cluster, load } = Accepting::start(servers, conversations, "imports").await?;
    let (mut ours, mut one, mut twenty, mut p50, mut p99) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 0..pace.rounds {
        one.push(pgbench.imports_per_second(ONE_BY_ONE, pace.time.as_secs())?);
        servers.settle_disk()?;
        let before = cluster.usage()?;
        let outcome = load.closed_loop(pace.time).await?.only(202)?;
        report.note(format!(
            "imports, round {round}: {:.0} imports/s (p50 {:.1} ms, p99 {:.1} ms); pgbench {:.0}; CPU µs per import: {}",
            outcome.per_second(202), outcome.percentile_ms(0.5), outcome.percentile_ms(0.99), one[round],
            listed(&cluster.usage()?.micros_each(&before, outcome.count())),
        ));
        ours.push(outcome.per_second(202));
        twenty.push(pgbench.imports_per_second(TWENTY, pace.time.as_secs())?);
        servers.settle_disk()?;
        let half = load.open_loop(ours[round] / 2.0, pace.time).await?.only(202)?;
        p50.push(half.percentile_ms(0.5));
        p99.push(half.percentile_ms(0.99));
    }
    let size = conversations.mean_bytes();
    let what = format!("imports accepted through the gateway, {size} B each, {CONNECTIONS} clients");
    let one = ("pgbench, one jsonb import per transaction, 16 clients", &one[..]);
    report.compare(what, "/s", &ours, one, Goal::Ratio(1.2));
    let twenty = ("pgbench, 20 imports per transaction, 4 clients", &twenty[..]);
    report.compare("the same", "/s", &ours, twenty, Goal::None);
    report.add("p50 at half of the maximum rate", "ms", &p50, Goal::AtMost(MAX_P99_MS));
    report.add("p99 at half of the maximum rate", "ms", &p99, Goal::AtMost(MAX_P99_MS));
    Ok(())
}
