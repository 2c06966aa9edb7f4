//! Cost of an import with millions of stored tickets, compared with a nearly empty cluster.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::accepting::Accepting;
use super::{Bench, MAX_P99_MS};
use crate::cluster::{Servers, Sizes, StoredTickets};
use crate::report::{Goal, Report};

/// Stored tickets of the nearly empty cluster.
const FEW: u64 = 10_000;
const WARM_UP: Duration = Duration::from_secs(2);
/// Intermediate sizes to measure.
const STEPS: [u64; 2] = [1_000_000, 5_000_000];
/// Disk space to keep free.
const RESERVE_BYTES: u64 = 5 << 30;
/// Disk bytes per table byte: retained write-ahead log and other files.
const DISK_PER_TABLE_BYTE: f64 = 1.2;

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("growth");
    let small = Accepting::start(servers, conversations, "few").await?;
    let large = Accepting::start(servers, conversations, "many").await?;
    let mut few = StoredTickets::of(&small.cluster)?;
    let mut many = StoredTickets::of(&large.cluster)?;
    many.fill(FEW)?;
    let max_stored = as_many_as_fit(servers, many.sizes()?, pace.tickets, report)?;
    for stored in STEPS.into_iter().filter(|step| *step < max_stored).chain([max_stored]) {
        let begin = Instant::now();
        many.fill(stored)?;
        report.note(format!("{stored} tickets stored after {:.0} s", begin.elapsed().as_secs_f64()));
        let (mut of_few, mut of_many) = (vec![], vec![]);
        for _ in 0..pace.rounds {
            few.empty()?;
            few.fill(FEW)?;
            of_few.push(round(&small, pace.time).await?);
            of_many.push(round(&large, pace.time).await?);
        }
        add(report, stored, of_few, of_many);
    }
    add_sizes(report, many.sizes()?, conversations.mean_bytes());
    Ok(())
}

/// Imports per second, and the p99 at half that rate in milliseconds.
async fn round(accepting: &Accepting, time: Duration) -> Result<(f64, f64)> {
    // Warm up: full-page writes after a checkpoint and replanning after a truncate are not part of the comparison.
    accepting.maximum(WARM_UP).await?;
    let max_rate = accepting.maximum(time).await?.per_second(202);
    let half = accepting.load.open_loop(max_rate / 2.0, time).await?.only(202)?;
    Ok((max_rate, half.percentile_ms(0.99)))
}

/// Adds what [`round`] measured with few and with many stored tickets.
fn add(report: &mut Report, stored: u64, of_few: Vec<(f64, f64)>, of_many: Vec<(f64, f64)>) {
    let baseline = format!("with {FEW} tickets stored before each round");
    let (few, few_p99): (Vec<f64>, Vec<f64>) = of_few.into_iter().unzip();
    let (many, many_p99): (Vec<f64>, Vec<f64>) = of_many.into_iter().unzip();
    let what = format!("imports accepted with {stored} tickets stored");
    report.compare(what, "/s", &many, (&baseline, &few), Goal::Ratio(0.8));
    let what = format!("p99 at half of the maximum rate, with {stored} tickets stored");
    report.compare(what, "ms", &many_p99, (&baseline, &few_p99), Goal::AtMost(MAX_P99_MS));
}

fn add_sizes(report: &mut Report, sizes: Sizes, body: usize) {
    let tables = sizes.table_bytes_each();
    let body = ("its body as it was sent", &[body as f64][..]);
    let what = format!("tables of a stored ticket, with {} stored", sizes.tickets);
    report.compare(what, "B", &[tables], body, Goal::None);
    let tables = ("its tables", &[tables][..]);
    report.compare("indexes of a stored ticket", "B", &[sizes.index_bytes_each()], tables, Goal::None);
}

/// `wanted` tickets, or as many as fit on the disk.
fn as_many_as_fit(servers: &Servers, sizes: Sizes, wanted: u64, report: &mut Report) -> Result<u64> {
    let free = servers.free_disk_bytes()?;
    let each = (sizes.table_bytes_each() + sizes.index_bytes_each()) * DISK_PER_TABLE_BYTE;
    let fit = (free.saturating_sub(RESERVE_BYTES) as f64 / each) as u64;
    if fit < wanted {
        report.note(format!(
            "the disk has room for {fit} tickets of {each:.0} B with {} GiB kept free; {wanted} were requested",
            RESERVE_BYTES >> 30
        ));
    }
    Ok(wanted.min(fit))
}
