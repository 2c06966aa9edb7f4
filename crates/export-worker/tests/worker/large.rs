//! A large file, in constant memory.

use anyhow::{Context as _, Result};
use assay_contracts::export::{ExportFilters, ExportKind};

use crate::place::execute;
use crate::stage::Stage;

const ROWS: u64 = 100_000;
const LINE_BYTES: u64 = 1_200;
/// Parts of an upload, chunks under way and one batch of rows; the file has about twice as much.
const MEMORY_LIMIT: u64 = 64 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_rows_are_written_in_bounded_memory() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    let insert = format!(
        "INSERT INTO evaluation_rows SELECT gen_random_uuid(), '{}', number, 0, gen_random_uuid(), 1,
         lpad(number::text, {LINE_BYTES}, 'x'), '' FROM generate_series({ROWS}, 1, -1) AS number",
        stage.organization_id
    );
    execute(&stage.located.database, insert).await?;
    let before = forget_memory_peak()?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&stage.config()?)?;
    let file = stage.file(id).await?;
    let grown = memory("VmHWM:")?.saturating_sub(before);
    assert!(file.bytes > ROWS * LINE_BYTES, "{}", file.bytes);
    assert!(grown < MEMORY_LIMIT, "memory grew by {grown} bytes");
    assert_eq!(u64::try_from(stage.column(id, "file_rows").await?)?, ROWS);
    let content = stage.content(id).await?;
    for (number, line) in (1..=ROWS).zip(content.lines().skip(1)) {
        assert!(
            line.len() as u64 == LINE_BYTES && line.trim_start_matches('x') == number.to_string(),
            "{number}"
        );
    }
    Ok(())
}

/// From now on the peak is that of what follows; answers the memory in use, in bytes.
fn forget_memory_peak() -> Result<u64> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    memory("VmRSS:")
}

fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).context("no such line")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes * 1024)
}
