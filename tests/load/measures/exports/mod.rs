//! Exports against `COPY` of the same rows: throughput, memory of the worker, download, alone and while imports run.

mod run;
mod stored;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::run::{Exported, export};
use self::stored::Stored;
use super::accepting::imports_to;
use super::{Bench, Pace};
use crate::baselines::copy;
use crate::client::Load;
use crate::cluster::{Cluster, Servers};
use crate::report::{Goal, Report};

const DATABASE: &str = "exports";
/// Conversations that are really evaluated; every exported line is a copy of one of their lines.
const SAMPLES: u64 = 500;
/// Time limit for evaluating them.
const EVALUATION_LIMIT: Duration = Duration::from_secs(60);
/// Imports per second during an export: below the maximum, so that both share the CPU.
const IMPORTS_PER_SECOND: f64 = 300.0;
const IMPORT_CONNECTIONS: usize = 16;

/// One value per round.
#[derive(Default)]
struct Figures {
    /// Speed of COPY of the plain table (none where there are too many rows for it, see `stored`), and of the finished lines.
    columns: Vec<f64>,
    lines: Vec<f64>,
    /// The faster COPY.
    baseline: Vec<f64>,
    alone: Vec<Exported>,
    busy: Vec<Exported>,
    p99_alone: Vec<f64>,
    p99_busy: Vec<f64>,
}

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("exports");
    let mut cluster = Cluster::distributed(servers, DATABASE).await?;
    cluster.register_agents(&conversations.agents).await?;
    let imports = imports_to(&cluster, conversations, "exports", IMPORT_CONNECTIONS);
    imports.closed_loop_count(SAMPLES).await?.only(202)?;
    await_rows(servers, SAMPLES).await?;
    let stored = Stored::multiply(servers, DATABASE, pace.rows)?;
    // A restarted worker has not used memory yet.
    cluster.stop("export-worker").await?;
    cluster.start("export-worker").await?;
    let mut figures = Figures::default();
    for round in 0..pace.rounds {
        baselines(servers, &stored, &mut figures)?;
        servers.sql("postgres", "CHECKPOINT")?;
        let before = cluster.usage()?;
        let exported = export(&cluster, &stored).await?;
        let each = cluster.usage()?.micros_each(&before, pace.rows);
        report.note(note(round, &stored, &exported, &figures, &each));
        figures.alone.push(exported);
        remove_files(&cluster.home().join("objects"))?;
        while_imports_run(&cluster, &stored, &imports, pace, &mut figures).await?;
    }
    add_rows(&figures, &stored, report);
    Ok(())
}

/// The report's note on a round.
fn note(
    round: usize,
    stored: &Stored,
    exported: &Exported,
    figures: &Figures,
    each: &BTreeMap<String, f64>,
) -> String {
    let cpu_micros: Vec<String> = each.iter().map(|(name, micros)| format!("{name} {micros:.2}")).collect();
    let columns = figures.columns.get(round).map(|speed| format!(", COPY of columns {speed:.0} MB/s"));
    format!(
        "round {round}: export {:.0} MB/s ({:.2} s, {:.0} MB){}, COPY of lines {:.0} MB/s; export-worker {:.0} MB at \
         rest, {:.0} MB at its peak; CPU µs per row, download included: {}",
        exported.megabytes_per_second(),
        exported.seconds,
        stored.bytes as f64 / 1e6,
        columns.unwrap_or_default(),
        figures.lines[round],
        exported.resting_megabytes,
        exported.peak_megabytes,
        cpu_micros.join(", "),
    )
}

fn baselines(servers: &Servers, stored: &Stored, figures: &mut Figures) -> Result<()> {
    let file = servers.folder("copied")?.join("file.csv");
    let copy = |statement: &str| copy::to_file(servers, stored.database(), statement, stored.rows, &file);
    let columns = stored.columns().map(copy).transpose()?;
    let lines = copy(&stored.lines())?;
    figures.columns.extend(columns);
    figures.lines.push(lines);
    figures.baseline.push(columns.map_or(lines, |columns| columns.max(lines)));
    Ok(())
}

/// Exports repeatedly while imports run; the last one counts.
async fn while_imports_run(
    cluster: &Cluster,
    stored: &Stored,
    imports: &Load,
    pace: Pace,
    figures: &mut Figures,
) -> Result<()> {
    let without_export = imports.open_loop(IMPORTS_PER_SECOND, pace.time).await?.only(202)?;
    figures.p99_alone.push(without_export.percentile_ms(0.99));
    // Longer with more than a million rows, because an export takes longer.
    let time = pace.time.mul_f64((stored.rows as f64 / 1e6).max(1.0));
    let begin = Instant::now();
    let exports = async {
        let mut last = export(cluster, stored).await?;
        while begin.elapsed().as_secs_f64() + last.seconds < time.as_secs_f64() {
            remove_files(&cluster.home().join("objects"))?;
            last = export(cluster, stored).await?;
        }
        anyhow::Ok(last)
    };
    let (imported, exported) = tokio::join!(imports.open_loop(IMPORTS_PER_SECOND, time), exports);
    figures.p99_busy.push(imported?.only(202)?.percentile_ms(0.99));
    figures.busy.push(exported?);
    remove_files(&cluster.home().join("objects"))
}

fn add_rows(figures: &Figures, stored: &Stored, report: &mut Report) {
    let values =
        |exports: &[Exported], value: fn(&Exported) -> f64| exports.iter().map(value).collect::<Vec<_>>();
    let (alone, busy) = (figures.alone.as_slice(), figures.busy.as_slice());
    let bytes = stored.bytes / stored.rows;
    let what = format!("export of {} rows, {bytes} B each, from request to complete", stored.rows);
    let speed = Exported::megabytes_per_second;
    let faster = "the faster COPY to a file, unsynced";
    report.compare(what, "MB/s", &values(alone, speed), (faster, &figures.baseline), Goal::Ratio(0.7));
    let columns = "COPY CSV of 43 columns of text";
    if !figures.columns.is_empty() {
        report.compare("the same", "MB/s", &values(alone, speed), (columns, &figures.columns), Goal::None);
    }
    let lines = ("COPY of the finished lines", &figures.lines[..]);
    report.compare("the same", "MB/s", &values(alone, speed), lines, Goal::None);
    let memory = |export: &Exported| export.peak_megabytes;
    report.add("peak memory of export-worker", "MB", &values(alone, memory), Goal::AtMost(64.0));
    let first = |export: &Exported| export.first_byte_ms;
    report.compare("first byte of the download", "ms", &values(alone, first), ("none", &[]), Goal::None);
    let download = |export: &Exported| export.download_megabytes_per_second;
    let what = "download through the gateway, hashed";
    report.compare(what, "MB/s", &values(alone, download), ("none", &[]), Goal::None);
    let what = format!("export while {IMPORTS_PER_SECOND} imports/s are accepted and evaluated");
    report.compare(what, "MB/s", &values(busy, speed), ("export alone", &values(alone, speed)), Goal::None);
    report.add("peak memory of export-worker then", "MB", &values(busy, memory), Goal::AtMost(64.0));
    let what = "p99 of these imports";
    report.compare(what, "ms", &figures.p99_busy, ("without an export", &figures.p99_alone), Goal::None);
}

async fn await_rows(servers: &Servers, rows: u64) -> Result<()> {
    let there = async {
        while servers.number(DATABASE, "SELECT count(*) FROM export.evaluation_rows")? < i64::try_from(rows)?
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(EVALUATION_LIMIT, there).await.context("evaluations do not arrive")?
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Files are large and no longer needed.
fn remove_files(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let removed =
            if path.is_dir() { remove_files(&path) } else { fs::remove_file(path).map_err(Into::into) };
        match removed {
            // The service may remove it concurrently.
            Err(error) if error.downcast_ref().is_some_and(is_gone) => {}
            other => other?,
        }
    }
    Ok(())
}
