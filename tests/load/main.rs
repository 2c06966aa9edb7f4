//! Benchmarks of the service beside baselines of the machine, such as pgbench: both alternate in the same run, over several
//! rounds, and medians count. `make bench` runs all of it.
//!
//! Everything runs on one machine, load generator included: compare figures within a run only.

#![allow(clippy::print_stdout, reason = "the report is the output of the benchmark")]

mod baselines;
mod client;
mod cluster;
mod conversations;
mod cpu;
mod measures;
mod report;
#[allow(clippy::expect_used, reason = "shared with the fuzz targets; the model is ours")]
#[path = "../../fuzz/fuzz_targets/small_model.rs"]
mod small_model;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use tempfile::TempDir;

use self::cluster::Servers;
use self::conversations::Conversations;
use self::measures::{
    Bench, Pace, console, evaluated, exports, growth, hops, imports, lists, replicas, standalone,
};
use self::report::Report;

/// Measures the service beside baselines of the machine.
#[derive(Parser)]
struct Arguments {
    /// What to measure; everything when nothing is named.
    parts: Vec<Part>,
    /// Rounds of which the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// Seconds of sustained measurements, which show that no backlog grows.
    #[arg(long, default_value_t = 20)]
    sustained: u64,
    /// Maximum number of stored tickets.
    #[arg(long, default_value_t = 5_000_000)]
    tickets: u64,
    /// One short round of each measurement: shows that everything works; the figures mean little.
    #[arg(long)]
    quick: bool,
    /// Evaluate with a model that takes hardly any time: what everything but the scorer costs.
    #[arg(long)]
    without_scorer: bool,
    /// Rows of an export.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Passed by cargo to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    Imports,
    Standalone,
    Evaluated,
    Hops,
    Exports,
    Growth,
    Replicas,
    Console,
}

impl Arguments {
    fn pace(&self) -> Pace {
        if self.quick {
            return Pace {
                rounds: 1,
                time: Duration::from_secs(2),
                sustained: Duration::from_secs(4),
                tickets: 100_000,
                rows: 50_000,
            };
        }
        Pace {
            rounds: self.rounds,
            time: Duration::from_secs(self.seconds),
            sustained: Duration::from_secs(self.sustained),
            tickets: self.tickets,
            rows: self.rows,
        }
    }
}

impl Part {
    async fn measure(self, bench: Bench<'_>, report: &mut Report) -> Result<()> {
        match self {
            Self::Imports => imports::measure(bench, report).await,
            Self::Standalone => standalone::measure(bench, report).await,
            Self::Evaluated => evaluated::measure(bench, report).await,
            Self::Hops => {
                hops::measure(bench, report).await?;
                lists::measure(bench, report).await
            }
            Self::Exports => exports::measure(bench, report).await,
            Self::Growth => growth::measure(bench, report).await,
            Self::Replicas => replicas::measure(bench, report).await,
            Self::Console => console::measure(bench, report).await,
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let home = tempfile::Builder::new().prefix("assay-load-").tempdir()?;
    remove_when_interrupted(home.path().to_owned())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&arguments, home))
}

/// Removes the folder, which may hold gigabytes. The processes in it end with us.
fn remove_when_interrupted(home: PathBuf) -> Result<()> {
    assay_testkit::signals::listen(move |_| {
        // The servers are still writing.
        for _ in 0..10 {
            if fs::remove_dir_all(&home).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        std::process::exit(130);
    })
}

async fn measure(arguments: &Arguments, home: TempDir) -> Result<()> {
    let parts = if arguments.parts.is_empty() { Part::value_variants() } else { &arguments.parts[..] };
    let conversations = Arc::new(Conversations::load()?);
    let mut servers = Servers::start(home)?;
    let checks_goals = !arguments.quick;
    let mut report = Report::new(checks_goals);
    if arguments.without_scorer {
        servers
            .use_model(&small_model::small_model(include_bytes!("../../crates/scoring/model/reader.bin")))?;
        report.note(
            "evaluated by one short layer and few trees: the scorer's own time is not in these figures",
        );
    }
    if arguments.quick {
        report.note(
            "one short round each: this shows that everything works; figures are not compared with goals",
        );
    }
    let kind = if conversations.are_real { "real" } else { "generated" };
    report.note(format!(
        "{} {kind} conversations, {} B on average",
        conversations.len(),
        conversations.mean_bytes()
    ));
    let bench = Bench { servers: &servers, conversations: &conversations, pace: arguments.pace() };
    let mut failed = Vec::new();
    for part in parts {
        // A failed part does not invalidate the others.
        if let Err(error) = part.measure(bench, &mut report).await {
            report.note(format!("{part:?} has no figures: {error:#}"));
            failed.push(part);
        }
    }
    report.finish()?;
    ensure!(failed.is_empty(), "without figures: {failed:?}");
    Ok(())
}
