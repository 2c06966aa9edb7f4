//! Fault injection: nothing accepted is lost. Faults are injected one after another, in an order given by a seed, while
//! clients import and export. Then the cluster is healed and settles, and the clients' answers are checked against the API,
//! the files and the databases. Every run writes its journal and a report below the target folder and prints the report.
//!
//! A short form runs with all other tests; `make chaos` runs every fault, with the seeds in `CHAOS_SEEDS`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is the output of the test")]

mod client;
mod cluster;
mod faults;
mod journal;
mod load;
mod report;
mod run;
mod verdict;

#[path = "../e2e/harness/table.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod table;

use anyhow::Result;
use assay_testkit::Rng;

use self::cluster::Kind;
use self::faults::Fault;
use self::run::{Plan, seeds};

/// Takes about a minute.
#[test]
fn distributed_loses_nothing_in_a_few_faults() -> Result<()> {
    run::run(Plan {
        name: "distributed-short",
        kind: Kind::Distributed { replicas: 1 },
        seed: 1,
        faults: Fault::selection(),
    })
}

#[test]
fn standalone_loses_nothing_when_it_is_killed() -> Result<()> {
    run::run(Plan {
        name: "standalone-short",
        kind: Kind::Standalone,
        seed: 1,
        faults: vec![Fault::KillEverything; 6],
    })
}

#[test]
#[ignore = "minutes: `make chaos`"]
fn distributed_loses_nothing_whatever_happens() -> Result<()> {
    seeds().try_for_each(|seed| {
        let faults = Rng::new(seed).shuffled(Fault::of_the_distributed_stack());
        run::run(Plan { name: "distributed", kind: Kind::Distributed { replicas: 2 }, seed, faults })
    })
}

#[test]
#[ignore = "minutes: `make chaos`"]
fn standalone_loses_nothing_whatever_happens() -> Result<()> {
    seeds().try_for_each(|seed| {
        let faults = Rng::new(seed).shuffled(Fault::of_the_standalone());
        run::run(Plan { name: "standalone", kind: Kind::Standalone, seed, faults })
    })
}
