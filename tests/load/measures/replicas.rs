//! Two replicas of every role on the same databases and the same bus, with one load generator for each gateway. Afterwards
//! every 202 is checked in PostgreSQL.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::accepting::{CONNECTIONS, imports_to};
use super::{Bench, Pace};
use crate::cluster::{Cluster, ReadModel, Servers};
use crate::cpu::listed;
use crate::report::{Goal, Report};

const DATABASE: &str = "replicas";
/// Longer than the longest retry delay.
const SETTLE_LIMIT: Duration = Duration::from_secs(400);

const EVALUATIONS: &str = "SELECT count(*) FROM scoring.evaluations";
const ROWS: &str = "SELECT count(*) FROM export.evaluation_rows";

/// Missing or incomplete conversations.
const LOST: [&str; 3] = [
    "SELECT {accepted} - count(*) FROM ingest.conversations",
    "SELECT count(*) FROM ingest.conversations accepted
     WHERE NOT EXISTS (SELECT FROM scoring.evaluations WHERE ticket_id = accepted.id)",
    "SELECT count(*) FROM ingest.conversations accepted
     WHERE NOT EXISTS (SELECT FROM export.evaluation_rows WHERE ticket_id = accepted.id)",
];

/// Second evaluations and second imports.
const DUPLICATES: [&str; 4] = [
    "(SELECT coalesce(sum(evaluated), 0) FROM scoring.progress) - (SELECT count(*) FROM scoring.evaluations)",
    "(SELECT coalesce(sum(watermark), 0) FROM export.progress) - (SELECT count(*) FROM export.evaluation_rows)",
    "SELECT count(*) FROM export.evaluation_rows stored JOIN scoring.evaluations made USING (ticket_id)
     WHERE stored.evaluation_id <> made.id",
    "SELECT count(*) FROM ingest.conversations accepted JOIN ingest.conversations again
     USING (organization_id, source, external_id) WHERE accepted.id < again.id",
];

/// Dead letters and failed evaluations.
const GIVEN_UP: [&str; 3] = [
    "SELECT count(*) FROM ingest.outbox WHERE dead_at IS NOT NULL",
    "SELECT count(*) FROM scoring.outbox WHERE dead_at IS NOT NULL",
    "SELECT count(*) FROM scoring.evaluations WHERE status = 'failed'",
];

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("replicas");
    let first = Cluster::distributed(servers, DATABASE).await?;
    let second = first.replica(servers).await?;
    first.register_agents(&conversations.agents).await?;
    let before = (first.usage()?, second.usage()?);
    let loads = (
        imports_to(&first, conversations, "first", CONNECTIONS),
        imports_to(&second, conversations, "second", CONNECTIONS),
    );
    let (of_first, of_second) =
        tokio::try_join!(loads.0.closed_loop(pace.sustained), loads.1.closed_loop(pace.sustained))?;
    let (of_first, of_second) = (of_first.only(202)?, of_second.only(202)?);
    let accepted = of_first.count() + of_second.count();
    let ended = Instant::now();
    // Missing or duplicate rows are reported below.
    if let Err(error) = ReadModel::of(&first)?.settle(accepted, SETTLE_LIMIT) {
        report.note(format!("replicas: after {SETTLE_LIMIT:?}: {error}"));
    }
    let settled = ended.elapsed().as_secs_f64();
    report.note(format!(
        "replicas: {} and {} accepted in {} s; {} and {} deliveries were retried; CPU µs per conversation: \
         first replica: {}; second replica: {}",
        of_first.count(),
        of_second.count(),
        pace.sustained.as_secs(),
        first.retried_deliveries()?,
        second.retried_deliveries()?,
        listed(&first.usage()?.micros_each(&before.0, accepted)),
        listed(&second.usage()?.micros_each(&before.1, accepted)),
    ));
    let load = ("time of the load", &[pace.sustained.as_secs_f64()][..]);
    let what = "time after the load until everything was evaluated and in the read model";
    report.compare(what, "s", &[settled], load, Goal::None);
    add(servers, pace, accepted, report)
}

fn add(servers: &Servers, pace: Pace, accepted: u64, report: &mut Report) -> Result<()> {
    let number = |query: &str| -> Result<f64> {
        let query = query.replace("{accepted}", &accepted.to_string());
        Ok(servers.number(DATABASE, &query)? as f64)
    };
    // Checked separately: an excess must not hide a deficit.
    let all =
        |queries: &[&str]| -> Result<f64> { queries.iter().map(|query| number(query).map(f64::abs)).sum() };
    let accepted = ("answered 202", &[accepted as f64][..]);
    let what = format!("evaluations of what two replicas accepted in {} s", pace.sustained.as_secs());
    report.compare(what, "", &[number(EVALUATIONS)?], accepted, Goal::Ratio(1.0));
    let what = "rows of them in the read model";
    report.compare(what, "", &[number(ROWS)?], accepted, Goal::Ratio(1.0));
    report.add("conversations lost", "", &[all(&LOST)?], Goal::AtMost(0.0));
    report.add("conversations evaluated or taken in twice", "", &[all(&DUPLICATES)?], Goal::AtMost(0.0));
    report.add("events and evaluations given up", "", &[all(&GIVEN_UP)?], Goal::AtMost(0.0));
    Ok(())
}
