//! One run: a cluster, clients, one fault after another, and the verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Client};
use crate::cluster::{Cluster, KEY, Kind, RECOVERY_LIMIT};
use crate::faults::{Fault, FaultContext};
use crate::journal::Journal;
use crate::load::{Conversations, Load};
use crate::report::{InjectedFault, Report};
use crate::verdict;
use assay_testkit::Rng;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
/// Imports that must be accepted after a fault before the next one.
const RECOVERY_IMPORTS: u64 = 10;

pub struct Plan {
    pub name: &'static str,
    pub kind: Kind,
    pub seed: u64,
    pub faults: Vec<Fault>,
}

/// The seeds in `CHAOS_SEEDS` (`1,2,3`), by default 1.
#[allow(clippy::disallowed_methods, reason = "a setting of the test, not of the product")]
pub fn seeds() -> impl Iterator<Item = u64> {
    let named = std::env::var("CHAOS_SEEDS").unwrap_or_default();
    let mut seeds: Vec<u64> = named.split(',').filter_map(|seed| seed.trim().parse().ok()).collect();
    if seeds.is_empty() {
        seeds.push(1);
    }
    seeds.into_iter()
}

/// Runs the plan, prints the report, and fails on a violation.
pub fn run(plan: Plan) -> Result<()> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos/{}-{}", plan.name, plan.seed));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut cluster = Cluster::start(plan.kind, &folder).await?;
        let report = inject_faults(&plan, &folder, &mut cluster).await;
        if !report.as_ref().is_ok_and(|report| report.violations.is_empty()) {
            eprintln!("{}", cluster.log_tails()?);
        }
        let report = report?;
        fs::write(folder.join("report.json"), serde_json::to_vec_pretty(&report)?)?;
        println!("{report}");
        ensure!(report.violations.is_empty(), "invariants were violated: see {}", folder.display());
        Ok(())
    })
}

async fn inject_faults(plan: &Plan, folder: &Path, cluster: &mut Cluster) -> Result<Report> {
    let client = Client::new(&cluster.base_url(), KEY)?;
    register_agents(&client).await?;
    let journal = Arc::new(Journal::create(&folder.join("journal.jsonl"))?);
    let conversations = Arc::new(Conversations::read(&example("conversations.jsonl")?, plan.seed)?);
    let load = Load::start(&client, &journal, &conversations);
    let mut rng = Rng::new(plan.seed);
    let mut report = Report::new(plan.name, plan.seed);
    let mut poisoned = 0;
    await_imports(&journal).await?;
    for fault in &plan.faults {
        if let Some(reason) = fault.unsupported_reason(cluster) {
            report.skip(*fault, reason);
            continue;
        }
        journal.record_event("fault", fault);
        let begun = Instant::now();
        let mut context = FaultContext {
            cluster,
            rng: &mut rng,
            client: &client,
            journal: &journal,
            poisoned: &mut poisoned,
        };
        fault.inject(&mut context).await.with_context(|| format!("{fault:?}"))?;
        let lasted = begun.elapsed();
        cluster.heal().await.with_context(|| format!("after {fault:?}"))?;
        await_imports(&journal).await.with_context(|| format!("after {fault:?}"))?;
        let recovery = begun.elapsed() - lasted;
        journal.record_event("recovered", fault);
        report.struck.push(InjectedFault { fault: *fault, lasted, recovery });
    }
    load.stop().await;
    verdict::check(cluster, &client, &journal, &conversations, poisoned, &mut report).await?;
    Ok(report)
}

/// Waits for [`RECOVERY_IMPORTS`] further accepted imports.
async fn await_imports(journal: &Journal) -> Result<()> {
    let target = journal.observed().accepted_answers + RECOVERY_IMPORTS;
    let deadline = Instant::now() + RECOVERY_LIMIT;
    while journal.observed().accepted_answers < target {
        ensure!(Instant::now() < deadline, "no import was accepted for {} s", RECOVERY_LIMIT.as_secs());
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn register_agents(client: &Client) -> Result<()> {
    for line in example("agents.jsonl")?.lines() {
        match client.register(&serde_json::from_str(line)?).await {
            Answer::Done { .. } => {}
            other => bail!("agent not registered: {other:?}"),
        }
    }
    Ok(())
}

pub fn example(name: &str) -> Result<String> {
    let path: PathBuf = Path::new(EXAMPLES).join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}
