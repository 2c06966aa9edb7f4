//! How much writing facts and stale days slows imports that run meanwhile. The baseline is a stack that does not write them.
//! Evaluations arrive at a fixed rate: the scorer would use most of the CPU, and hide the difference.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use assay_contracts::evaluation::Evaluation;
use assay_contracts::ids::OrganizationId;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::{ExportStore, export_store};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::{new_id, now};

use super::super::Bench;
use super::super::accepting::Accepting;
use super::stored::event;
use crate::cluster::Servers;
use crate::conversations::Conversations;
use crate::report::{Goal, Report};

/// Discards what is written for lists and summaries.
const WITHOUT_FACTS: &str = "
    CREATE RULE nothing AS ON INSERT TO export.evaluation_facts DO INSTEAD NOTHING;
    CREATE RULE nothing AS ON INSERT TO export.stale_days DO INSTEAD NOTHING";

/// Evaluations per transaction of the read model, and the interval between transactions.
const BATCH: u64 = 64;
const INTERVAL: Duration = Duration::from_millis(160);

/// A stack that accepts imports, and the store of its read model, into which evaluations are written.
struct StackUnderTest {
    accepting: Accepting,
    exports: ExportStore,
    organization_id: OrganizationId,
    next: AtomicU64,
}

impl StackUnderTest {
    async fn start(servers: &Servers, conversations: &Arc<Conversations>, name: &str) -> Result<Self> {
        let accepting = Accepting::start(servers, conversations, name).await?;
        let settings =
            DatabaseSettings { database_url: servers.admin_url(name).into(), database_pool_size: 2 };
        let exports = export_store(&Database::open(&settings, "export")?);
        Ok(Self { accepting, exports, organization_id: new_id(), next: AtomicU64::new(0) })
    }

    /// Imports accepted per second while evaluations arrive, and the mean milliseconds of a transaction with evaluations.
    async fn round(&self, samples: &[Evaluation], time: Duration) -> Result<(f64, f64)> {
        let mut transactions = Vec::new();
        let outcome = tokio::select! {
            outcome = self.accepting.maximum(time) => outcome?,
            failed = self.write_evaluations(samples, &mut transactions) => match failed? {},
        };
        Ok((outcome.per_second(202), transactions.iter().sum::<f64>() / transactions.len().max(1) as f64))
    }

    /// Writes evaluations into the read model until the future is dropped.
    async fn write_evaluations(
        &self,
        samples: &[Evaluation],
        transactions: &mut Vec<f64>,
    ) -> Result<Infallible> {
        let mut ticks = tokio::time::interval(INTERVAL);
        loop {
            ticks.tick().await;
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            let rows: Vec<EvaluationRow> = (first..first + BATCH)
                .map(|number| EvaluationRow::of(new_id(), &event(number, self.organization_id, samples)))
                .collect();
            let began = Instant::now();
            self.exports.record_rows(Arc::new(rows), now()).await?;
            transactions.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
}

pub async fn measure(
    Bench { servers, conversations, pace }: Bench<'_>,
    samples: &[Evaluation],
    report: &mut Report,
) -> Result<()> {
    let with = StackUnderTest::start(servers, conversations, "with_facts").await?;
    let without = StackUnderTest::start(servers, conversations, "without_facts").await?;
    servers.sql("without_facts", WITHOUT_FACTS)?;
    // Index 0 is the stack with facts, index 1 the one without.
    let (mut accepted_per_second, mut transaction_ms) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    // Alternately, so that neither is always first; an even number of rounds, so that each is first in half of them.
    for round in 0..2 * pace.rounds {
        for place in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            servers.settle_disk()?;
            let (per_second, mean_ms) = [&with, &without][place].round(samples, pace.time).await?;
            accepted_per_second[place].push(per_second);
            transaction_ms[place].push(mean_ms);
        }
    }
    let baseline = "the same without facts and stale days";
    let written_per_second = 1e3 * BATCH as f64 / INTERVAL.as_millis() as f64;
    let what = format!("imports accepted beside {written_per_second:.0} evaluations per second");
    let [with_facts, without_facts] = &accepted_per_second;
    report.compare(what, "/s", with_facts, (baseline, without_facts), Goal::Ratio(0.95));
    let what = format!("transaction with {BATCH} evaluations in the read model");
    let [with_facts, without_facts] = &transaction_ms;
    report.compare(what, "ms", with_facts, (baseline, without_facts), Goal::None);
    Ok(())
}
