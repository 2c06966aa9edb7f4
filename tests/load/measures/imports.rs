//! Accepted imports: how many a second, and how long one takes at half of that.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::Result;

use super::Pace;
use crate::client::Load;
use crate::conversations::Conversations;
use crate::limits::pgbench::{Pgbench, Shape};
use crate::report::{Goal, Report, Row};
use crate::site::{Servers, Site};

/// Clients of the service. Each waits for its answer, as each of pgbench's does.
const CONNECTIONS: usize = 64;
const ONE_BY_ONE: Shape = Shape { clients: 16, imports_a_transaction: 1 };
const TWENTY: Shape = Shape { clients: 4, imports_a_transaction: 20 };
const WARM_UP: Duration = Duration::from_secs(2);

pub async fn measure(
    servers: &Servers,
    conversations: &Arc<Conversations>,
    pace: Pace,
    report: &mut Report,
) -> Result<()> {
    let pgbench = Pgbench::prepare(servers, conversations)?;
    let mut site = Site::distributed(servers, "imports").await?;
    site.register_agents(&conversations.agents).await?;
    // What is compared is accepting: pgbench evaluates nothing either.
    site.stop("scoring-worker")?;
    let load = Load {
        address: site.gateway().to_owned(),
        connections: CONNECTIONS,
        requests: conversations.imports("/v1/assess", "imports", {
            let key = site.key();
            move || key.to_owned()
        }),
        next: Arc::new(AtomicU64::new(0)),
    };
    load.as_fast_as_possible(WARM_UP).await?.only(202)?;
    let (mut ours, mut one, mut twenty, mut p50, mut p99) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 0..pace.rounds {
        one.push(pgbench.run(ONE_BY_ONE, pace.time.as_secs())?);
        servers.sql("postgres", "CHECKPOINT")?;
        let before = site.usage()?;
        let outcome = load.as_fast_as_possible(pace.time).await?.only(202)?;
        let each = site.usage()?.micros_each(&before, outcome.count());
        report.note(format!(
            "round {round}: {:.0} imports/s (p50 {:.1} ms, p99 {:.1} ms); pgbench {:.0}; processor µs an import: {}",
            outcome.per_second(202), outcome.percentile_ms(0.5), outcome.percentile_ms(0.99), one[round],
            each.iter().map(|(name, micros)| format!("{name} {micros:.0}")).collect::<Vec<_>>().join(", "),
        ));
        ours.push(outcome.per_second(202));
        twenty.push(pgbench.run(TWENTY, pace.time.as_secs())?);
        let half = load.at_rate(ours[round] / 2.0, pace.time).await?.only(202)?;
        p50.push(half.percentile_ms(0.5));
        p99.push(half.percentile_ms(0.99));
    }
    let size = conversations.mean_bytes();
    let row = |what: &str, unit, ours: &[f64], limit: (&str, &[f64]), goal| Row {
        section: "a",
        what: what.to_owned(),
        unit,
        ours: ours.to_vec(),
        limit: (limit.0.to_owned(), limit.1.to_vec()),
        goal,
    };
    let what = format!("imports accepted through the gateway, {size} B each, {CONNECTIONS} clients");
    report.add(row(
        &what,
        "/s",
        &ours,
        ("pgbench, one jsonb import a transaction, 16 clients", &one),
        Goal::Ratio(1.2),
    ));
    report.add(row(
        "the same",
        "/s",
        &ours,
        ("pgbench, 20 imports a transaction, 4 clients", &twenty),
        Goal::None,
    ));
    report.add(row("p50 at half of it", "ms", &p50, ("goal of p99", &[]), Goal::None));
    report.add(row("p99 at half of it", "ms", &p99, ("goal", &[]), Goal::AtMost(15.0)));
    Ok(())
}
