//! A large file, in constant memory.

use anyhow::{Context as _, Result};
use assay_contracts::export::{ExportFilters, ExportKind};
use assay_testkit::execute_on;

use crate::test_app::TestApp;

const ROWS: u64 = 100_000;
const LINE_BYTES: u64 = 1_200;
/// Upload parts, buffered chunks and one batch of rows; the file is about twice as large.
const MEMORY_LIMIT: u64 = 64 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_file_is_written_in_bounded_memory() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    // In parts, each within the time limit of a statement on a busy machine; in descending order, so that the rows must be
    // sorted.
    for part in (0..10).rev() {
        let (first, last) = (part * ROWS / 10 + 1, (part + 1) * ROWS / 10);
        let insert = format!(
            "INSERT INTO evaluation_rows SELECT gen_random_uuid(), '{}', number, 0, gen_random_uuid(), 1,
             lpad(number::text, {LINE_BYTES}, 'x'), '' FROM generate_series({last}, {first}, -1) AS number",
            app.organization_id
        );
        execute_on(&app.test_database.database, insert).await?;
    }
    let before = reset_memory_peak()?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker()?;
    let file = app.file(id).await?;
    let grown = memory("VmHWM:")?.saturating_sub(before);
    assert!(file.bytes > ROWS * LINE_BYTES, "{}", file.bytes);
    assert!(grown < MEMORY_LIMIT, "memory grew by {grown} bytes");
    assert_eq!(u64::try_from(app.column(id, "file_rows").await?)?, ROWS);
    let content = app.content(id).await?;
    for (number, line) in (1..=ROWS).zip(content.lines().skip(1)) {
        assert!(
            line.len() as u64 == LINE_BYTES && line.trim_start_matches('x') == number.to_string(),
            "{number}"
        );
    }
    Ok(())
}

/// Resets the peak of the memory in use; returns the memory in use, in bytes.
fn reset_memory_peak() -> Result<u64> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    memory("VmRSS:")
}

/// A memory figure of this process, in bytes.
fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).context("no such line")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes * 1024)
}
