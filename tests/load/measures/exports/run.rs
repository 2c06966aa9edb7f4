//! One export from a client's view: created, awaited, downloaded and verified.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::stored::{ALL_STARTED_BEFORE, Stored};
use crate::cluster::Cluster;
use crate::cpu::{peak_memory_mib, reset_peak_memory};

const EXPORTS: &str = "/v1/evaluations/exports";
const POLL: Duration = Duration::from_millis(20);
/// Megabytes (10⁶ bytes) of a MiB.
const MB_PER_MIB: f64 = 1.048_576;

pub struct Exported {
    /// From the request until the file was complete.
    pub seconds: f64,
    pub bytes: u64,
    /// Memory of the worker before the export, in 10⁶ bytes.
    pub resting_megabytes: f64,
    /// Peak memory of the worker, in 10⁶ bytes, from the request until the file was complete.
    pub peak_megabytes: f64,
    /// From the request for the download until its first byte arrived.
    pub first_byte_ms: f64,
    pub download_megabytes_per_second: f64,
}

impl Exported {
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// Fails unless the file holds exactly the stored rows.
pub async fn export(cluster: &Cluster, stored: &Stored) -> Result<Exported> {
    let worker = cluster.pid("export-worker")?;
    reset_peak_memory(worker)?;
    let resting_megabytes = peak_memory_mib(worker)? * MB_PER_MIB;
    let begin = Instant::now();
    // Excludes conversations imported meanwhile, so the file is always the same.
    let request = json!({"kind": "axis", "filters": {"to": ALL_STARTED_BEFORE}});
    let (status, created) = cluster.call(Method::POST, EXPORTS, Some(&request)).await?;
    ensure!(status == 201, "no export: {status} {created}");
    let path = format!("{EXPORTS}/{}", created["id"].as_str().context("no id")?);
    let address = loop {
        tokio::time::sleep(POLL).await;
        let (_, export) = cluster.call(Method::GET, &path, None).await?;
        match export["status"].as_str() {
            Some("complete") => break export["download_url"].as_str().context("no address")?.to_owned(),
            Some("pending" | "running") => {}
            _ => bail!("the export failed: {export}"),
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    let peak_megabytes = peak_memory_mib(worker)? * MB_PER_MIB;
    let download_begin = Instant::now();
    let mut answer = cluster.http().get(address).send().await?.error_for_status()?;
    let (mut bytes, mut hasher, mut first_byte_ms) = (0, Sha256::new(), None);
    while let Some(chunk) = answer.chunk().await? {
        first_byte_ms.get_or_insert_with(|| download_begin.elapsed().as_secs_f64() * 1e3);
        bytes += chunk.len() as u64;
        hasher.update(&chunk);
    }
    let download_megabytes_per_second = bytes as f64 / 1e6 / download_begin.elapsed().as_secs_f64();
    let sha256 = hex::encode(hasher.finalize());
    ensure!(
        (bytes, &sha256) == (stored.bytes, &stored.sha256),
        "the file has {bytes} B and the SHA-256 {sha256}, expected {} B and {}",
        stored.bytes,
        stored.sha256
    );
    let first_byte_ms = first_byte_ms.context("an empty file")?;
    Ok(Exported {
        seconds,
        bytes,
        resting_megabytes,
        peak_megabytes,
        first_byte_ms,
        download_megabytes_per_second,
    })
}
