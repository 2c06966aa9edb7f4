//! `assay capacity`: sizes an installation for a load. `proto-docs/scaling.md` explains the figures.

mod costs;

use std::io::{Write, stdout};

use anyhow::{Result, ensure};

use self::costs::{
    CPU_MICROS, Component, EVALUATION_BYTES, EVENT_BYTES, EXPORT_ROW_BYTES, IDENTITY_BYTES,
    MEASURED_BODY_BYTES, TRANSCRIPT_BYTES, WRITE_AHEAD_BYTES,
};
use crate::cli::CapacityArguments;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// Planned CPU utilisation: the rest is for short peaks, vacuum, and the loss of a node.
const UTILISATION: f64 = 0.5;

/// Maximum factor of the scorer's time for long bodies: its encoder reads 512 tokens. A conversation of 4 MB takes 137 ms instead of 52.
const MAX_SCORING_FACTOR: f64 = 137.0 / 52.0;

/// Cores of one replica: more replicas are better than larger ones.
const CORES_PER_REPLICA: f64 = 2.0;

/// Peak conversations per second that one PostgreSQL is planned to write. Above it, organizations are divided among several.
const MAX_RATE_PER_SHARD: f64 = 3_000.0;

#[derive(Debug, PartialEq)]
struct Plan {
    average_per_second: f64,
    peak_per_second: f64,
    components: Vec<ComponentPlan>,
    transcripts_gb: f64,
    evaluations_gb: f64,
    identities_gb_a_year: f64,
    broker_gb: f64,
    write_ahead_gb_a_day: f64,
    full_export_gb: f64,
    shards: u32,
}

#[derive(Debug, PartialEq)]
struct ComponentPlan {
    component: Component,
    cores: f64,
    replicas: u32,
}

pub fn run(arguments: &CapacityArguments) -> Result<()> {
    let plan = plan(arguments)?;
    write_plan(&mut stdout().lock(), arguments, &plan)?;
    Ok(())
}

fn plan(arguments: &CapacityArguments) -> Result<Plan> {
    let per_day = arguments.conversations_per_day as f64;
    ensure!(arguments.conversations_per_day > 0, "--conversations-per-day must be 1 or more");
    ensure!(
        arguments.peak_factor >= 1.0,
        "--peak-factor must be 1 or more: the peak is not below the average"
    );
    ensure!(arguments.body_bytes > 0, "--body-bytes must be 1 or more");
    let average_per_second = per_day / SECONDS_PER_DAY;
    let peak_per_second = average_per_second * arguments.peak_factor;
    let size_factor = arguments.body_bytes as f64 / MEASURED_BODY_BYTES;
    let shards = (peak_per_second / MAX_RATE_PER_SHARD).ceil().max(1.0) as u32;
    let components = CPU_MICROS.iter().map(|(component, micros)| {
        let max_factor =
            if *component == Component::ScoringWorker { MAX_SCORING_FACTOR } else { f64::INFINITY };
        let cores = peak_per_second * micros * size_factor.min(max_factor) / 1e6 / UTILISATION;
        let replicas_for_cores = ((cores / CORES_PER_REPLICA).ceil() as u32).max(component.min_replicas());
        // More replicas of PostgreSQL do not write more: the load decides on the number of shards.
        let is_sharded = *component == Component::Postgres;
        let replicas = if is_sharded { component.min_replicas() * shards } else { replicas_for_cores };
        ComponentPlan { component: *component, cores, replicas }
    });
    let stored_gb = |days: u32, bytes: f64| per_day * f64::from(days) * bytes * size_factor / 1e9;
    Ok(Plan {
        average_per_second,
        peak_per_second,
        components: components.collect(),
        transcripts_gb: stored_gb(arguments.transcript_days, TRANSCRIPT_BYTES),
        evaluations_gb: stored_gb(arguments.evaluation_days, EVALUATION_BYTES),
        identities_gb_a_year: per_day * 365.0 * IDENTITY_BYTES / 1e9,
        // One day of events on each of three nodes: an outage of scoring may last that long before an alert is handled.
        broker_gb: per_day * EVENT_BYTES * size_factor / 1e9,
        write_ahead_gb_a_day: per_day * WRITE_AHEAD_BYTES * size_factor / 1e9,
        full_export_gb: per_day * f64::from(arguments.evaluation_days) * EXPORT_ROW_BYTES / 1e9,
        shards,
    })
}

fn write_plan(out: &mut impl Write, arguments: &CapacityArguments, plan: &Plan) -> std::io::Result<()> {
    writeln!(
        out,
        "{} conversations a day of {} bytes: {:.1} a second on average, {:.1} at the peak (factor {})\n",
        arguments.conversations_per_day,
        arguments.body_bytes,
        plan.average_per_second,
        plan.peak_per_second,
        arguments.peak_factor
    )?;
    writeln!(out, "{:<16} {:>8} {:>9}", "processors", "cores", "replicas")?;
    for ComponentPlan { component, cores, replicas } in &plan.components {
        writeln!(out, "{:<16} {cores:>8.2} {replicas:>9}", component.name())?;
    }
    writeln!(
        out,
        "\nCores at the peak, planned to be half busy. agent-registry, export-worker and webhooks need next to nothing\n\
         between exports: two replicas of each, and one core for each export that is written at the same time.\n"
    )?;
    writeln!(out, "storage")?;
    let days = |days: u32| format!("{days} days");
    let rows = [
        ("PostgreSQL: transcripts", plan.transcripts_gb, days(arguments.transcript_days)),
        ("PostgreSQL: evaluations", plan.evaluations_gb, days(arguments.evaluation_days)),
        ("PostgreSQL: identities", plan.identities_gb_a_year, "a year, for ever".to_owned()),
        ("PostgreSQL: log to archive", plan.write_ahead_gb_a_day, "a day".to_owned()),
        ("RabbitMQ, each node", plan.broker_gb, "with scoring away for a day".to_owned()),
        ("objects: one full export", plan.full_export_gb, "of all evaluations kept".to_owned()),
    ];
    for (name, gb, note) in rows {
        writeln!(out, "{name:<28} {gb:>10.1} GB  {note}")?;
    }
    if plan.shards > 1 {
        writeln!(
            out,
            "\nThe peak is more than one PostgreSQL should write: {} shards by organization, see proto-docs/scaling.md.",
            plan.shards
        )?;
    }
    writeln!(
        out,
        "\nMeasured on one machine; `make bench` says how yours compares. Double the storage for replicas."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(conversations_per_day: u64) -> CapacityArguments {
        CapacityArguments {
            conversations_per_day,
            peak_factor: 4.0,
            body_bytes: 5_000,
            transcript_days: 365,
            evaluation_days: 365,
        }
    }

    fn text(arguments: &CapacityArguments) -> String {
        let mut out = Vec::new();
        write_plan(&mut out, arguments, &plan(arguments).unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn small_installation_has_two_replicas_and_three_brokers() {
        let plan = plan(&arguments(10_000)).unwrap();
        for ComponentPlan { component, replicas, .. } in plan.components {
            assert_eq!(replicas, if component == Component::RabbitMq { 3 } else { 2 }, "{component:?}");
        }
        assert_eq!(plan.shards, 1);
    }

    #[test]
    fn cores_and_storage_scale_with_count_and_body_size() {
        let one = plan(&arguments(1_000_000)).unwrap();
        let ten = plan(&arguments(10_000_000)).unwrap();
        let long = plan(&CapacityArguments { body_bytes: 50_000, ..arguments(1_000_000) }).unwrap();
        for (index, ComponentPlan { component, cores, .. }) in one.components.iter().enumerate() {
            assert!((ten.components[index].cores / cores - 10.0).abs() < 1e-9);
            let factor = if *component == Component::ScoringWorker { MAX_SCORING_FACTOR } else { 10.0 };
            assert!((long.components[index].cores / cores - factor).abs() < 1e-9);
        }
        assert!((ten.transcripts_gb / one.transcripts_gb - 10.0).abs() < 1e-9);
        assert!((long.transcripts_gb / one.transcripts_gb - 10.0).abs() < 1e-9);
        assert!((long.identities_gb_a_year - one.identities_gb_a_year).abs() < 1e-9);
    }

    #[test]
    fn peak_factor_affects_cores_and_shards_but_not_storage() {
        let calm = plan(&CapacityArguments { peak_factor: 1.0, ..arguments(100_000_000) }).unwrap();
        let busy = plan(&CapacityArguments { peak_factor: 8.0, ..arguments(100_000_000) }).unwrap();
        assert!(busy.shards > calm.shards && busy.components[0].cores > calm.components[0].cores);
        assert!((calm.transcripts_gb - busy.transcripts_gb).abs() < 1e-9);
        assert!(text(&CapacityArguments { peak_factor: 8.0, ..arguments(100_000_000) }).contains("shards"));
    }

    #[test]
    fn invalid_arguments_are_refused_by_name() {
        let refused = |arguments: CapacityArguments| plan(&arguments).unwrap_err().to_string();
        assert!(refused(arguments(0)).contains("--conversations-per-day"));
        assert!(refused(CapacityArguments { peak_factor: 0.5, ..arguments(1) }).contains("--peak-factor"));
        assert!(refused(CapacityArguments { body_bytes: 0, ..arguments(1) }).contains("--body-bytes"));
    }
}
