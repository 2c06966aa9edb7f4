//! The service measured against the limits of what it is built on: project and limit side by side in the same run,
//! alternating, several rounds, medians. `make bench` runs all of it.
//!
//! Everything runs on one machine, load generator included: figures are for comparison within a run.

#![allow(clippy::print_stdout, reason = "the report is for the one who runs it")]
#![allow(dead_code, reason = "some parts are still to come")]

mod client;
mod conversations;
mod limits;
mod measures;
mod processors;
mod report;
mod site;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;

use self::conversations::Conversations;
use self::measures::{Pace, exports, imports};
use self::report::Report;
use self::site::Servers;

/// Measures the service against its limits.
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
    /// Rows of an export.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// What cargo tells every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Part {
    Imports,
    Exports,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let wants = |part| arguments.parts.is_empty() || arguments.parts.contains(&part);
    let pace = Pace { rounds: arguments.rounds, time: Duration::from_secs(arguments.seconds) };
    let conversations = Arc::new(Conversations::load()?);
    let servers = Servers::start()?;
    let mut report = Report::default();
    let kind = if conversations.are_real { "real" } else { "generated" };
    report.note(format!(
        "{} {kind} conversations, {} B on average",
        conversations.len(),
        conversations.mean_bytes()
    ));
    if wants(Part::Imports) {
        imports::measure(&servers, &conversations, pace, &mut report).await?;
    }
    if wants(Part::Exports) {
        exports::measure(&servers, &conversations, pace, arguments.rows, &mut report).await?;
    }
    report.finish()
}
