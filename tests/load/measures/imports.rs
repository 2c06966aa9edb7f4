//! Accepted imports: how many a second, and how long one takes at half of that.

use std::sync::Arc;

use anyhow::Result;

use super::accepting::{Accepting, CONNECTIONS};
use super::{HIGHEST_P99_MS, Pace};
use crate::conversations::Conversations;
use crate::limits::pgbench::{Pgbench, Shape};
use crate::processors::listed;
use crate::report::{Goal, Report, Row};
use crate::site::Servers;

const ONE_BY_ONE: Shape = Shape { clients: 16, imports_a_transaction: 1 };
const TWENTY: Shape = Shape { clients: 4, imports_a_transaction: 20 };

pub async fn measure(
    servers: &Servers,
    conversations: &Arc<Conversations>,
    pace: Pace,
    report: &mut Report,
) -> Result<()> {
    let pgbench = Pgbench::prepare(servers, conversations)?;
    let Accepting { site, load } = Accepting::start(servers, conversations, "imports").await?;
    let (mut ours, mut one, mut twenty, mut p50, mut p99) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 0..pace.rounds {
        one.push(pgbench.run(ONE_BY_ONE, pace.time.as_secs())?);
        servers.settle_disk()?;
        let before = site.usage()?;
        let outcome = load.as_fast_as_possible(pace.time).await?.only(202)?;
        report.note(format!(
            "imports, round {round}: {:.0} imports/s (p50 {:.1} ms, p99 {:.1} ms); pgbench {:.0}; processor µs an import: {}",
            outcome.per_second(202), outcome.percentile_ms(0.5), outcome.percentile_ms(0.99), one[round],
            listed(&site.usage()?.micros_each(&before, outcome.count())),
        ));
        ours.push(outcome.per_second(202));
        twenty.push(pgbench.run(TWENTY, pace.time.as_secs())?);
        servers.settle_disk()?;
        let half = load.at_rate(ours[round] / 2.0, pace.time).await?.only(202)?;
        p50.push(half.percentile_ms(0.5));
        p99.push(half.percentile_ms(0.99));
    }
    let size = conversations.mean_bytes();
    let what = format!("imports accepted through the gateway, {size} B each, {CONNECTIONS} clients");
    let one = ("pgbench, one jsonb import a transaction, 16 clients", &one[..]);
    report.add(Row::beside("a", what, "/s", &ours, one, Goal::Ratio(1.2)));
    let twenty = ("pgbench, 20 imports a transaction, 4 clients", &twenty[..]);
    report.add(Row::beside("a", "the same", "/s", &ours, twenty, Goal::None));
    report.add(Row::alone("a", "p50 at half of it", "ms", &p50, Goal::AtMost(HIGHEST_P99_MS)));
    report.add(Row::alone("a", "p99 at half of it", "ms", &p99, Goal::AtMost(HIGHEST_P99_MS)));
    Ok(())
}
