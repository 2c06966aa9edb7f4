//! Memory of clients that do not read their responses. The only test of its process, whose memory it measures.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;

use self::support::{Gateway, LARGE_FILE};

/// Memory of this process, in KiB.
fn resident_kib() -> Result<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_read_nothing_take_at_most_64_kib_each() -> Result<()> {
    const CLIENTS: usize = 200;
    let gateway = Gateway::start(|config| config.max_keyless_in_flight = CLIENTS)?;
    gateway.get(LARGE_FILE).await?.bytes().await?;
    gateway.get("/openapi.json").await?.bytes().await?;
    let before = resident_kib()?;
    let (connections, _) =
        gateway.fill_slots(LARGE_FILE, "/openapi.json", StatusCode::SERVICE_UNAVAILABLE).await?;
    let grown = resident_kib()?.saturating_sub(before);
    ensure!(grown <= 64 * CLIENTS, "{CLIENTS} clients took {grown} KiB");
    drop(connections);
    gateway.wait_for_status("/openapi.json", StatusCode::OK).await?;
    Ok(())
}
