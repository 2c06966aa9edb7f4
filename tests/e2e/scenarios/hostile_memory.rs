//! Memory of hostile bodies: JSON that expands when it is parsed, and subjects of megabytes.

#![allow(clippy::print_stderr, reason = "prints measured figures")]

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::harness::{Api, Kind, PrivateStack, conversation, edited, set};

/// The largest body (4 MiB).
const LIMIT: usize = 4 * 1024 * 1024;

/// A body may cost a process this many times its size while it is handled.
const MAX_FACTOR: u64 = 5;

/// Memory that any first request costs: threads, connections, caches.
const FIRST_REQUEST_KIB: u64 = 16 * 1024;

/// Imports with large subjects.
const SUBJECTS: usize = 40;

/// Memory limits of `deploy/` in MiB, by process.
const LIMITS: [(&str, u64); 7] = [
    ("gateway", 1024),
    ("ingest", 768),
    ("scoring-worker", 512),
    ("export", 512),
    ("export-worker", 512),
    ("webhooks", 384),
    ("agent-registry", 256),
];

/// One body at a time, then large subjects through the whole path.
pub async fn run(stack: &mut PrivateStack) -> Result<()> {
    stack.start().await?;
    let api = stack.api()?;
    api.import(&conversation("warm-up")).await?;
    for path in ["/v1/assess", "/v1/agents", "/v1/evaluations/exports", "/v1/webhooks"] {
        for (name, body) in expanding_bodies() {
            reset_peaks(stack)?;
            let before = peaks(stack)?;
            let reply = api.post_bytes(path, body.clone()).await?;
            ensure!(reply.status < 500, "{name} to {path}: {}", reply.status);
            for ((process, before), (_, after)) in before.into_iter().zip(peaks(stack)?) {
                let most = before + FIRST_REQUEST_KIB + MAX_FACTOR * (LIMIT as u64) / 1024;
                ensure!(after <= most, "{name} to {path}: {process} went from {before} to {after} KiB");
            }
        }
    }
    large_subjects(stack, &api).await
}

/// Nested arrays in a field that is not read, and in one that is; objects; many elements.
fn expanding_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let nested = "[".repeat(120) + &"]".repeat(120);
    let filled = |before: &str, item: &str, after: &str| {
        let count = (LIMIT - before.len() - after.len()) / (item.len() + 1);
        format!("{before}{}{after}", vec![item; count].join(",")).into_bytes()
    };
    vec![
        ("unread nested arrays", filled(r#"{"external_id":"a","name":"b","x":["#, &nested, "]}")),
        ("read nested arrays", filled(r#"{"name":["#, &nested, "]}")),
        ("unread objects", filled(r#"{"external_id":"a","name":"b","x":["#, "{}", "]}")),
        ("numbers in a list that is read", filled(r#"{"messages":["#, "1", "]}")),
    ]
}

async fn large_subjects(stack: &PrivateStack, api: &Api) -> Result<()> {
    let subject = "Größe ".repeat(600_000 / 6 * 5);
    reset_peaks(stack)?;
    let mut tickets = Vec::new();
    for number in 0..SUBJECTS {
        let body = edited(
            conversation(&format!("subject-{number}")),
            &[set("/subject", format!("{number} {subject}"))],
        );
        tickets.push(api.import(&body).await?);
    }
    for id in &tickets {
        api.evaluation(id).await?;
    }
    let stored = api.get(&format!("/v1/tickets/{}", tickets[0])).await?.expect(200)?;
    ensure!(stored["subject"].as_str().is_some_and(|text| text.ends_with(&subject)), "the subject was cut");
    let file = api.file(&api.export(&json!({"kind": "axis"})).await?).await?;
    ensure!(file.len() < SUBJECTS * 8 * 1024, "the file has {} bytes", file.len());
    for (process, peak) in peaks(stack)? {
        let limit = match stack.kind() {
            Kind::Standalone => 1024,
            Kind::Distributed => limit_of(process)?,
        };
        eprintln!("  peak memory of {process}: {} MiB", peak / 1024);
        ensure!(peak < limit * 1024, "{process} took {peak} KiB of {limit} MiB");
    }
    Ok(())
}

fn limit_of(process: &str) -> Result<u64> {
    let limit = LIMITS.into_iter().find(|(name, _)| *name == process);
    Ok(limit.with_context(|| format!("no limit of {process}"))?.1)
}

/// Peak resident memory of each process in KiB.
fn peaks(stack: &PrivateStack) -> Result<Vec<(&'static str, u64)>> {
    stack.names().iter().map(|name| Ok((*name, peak_kib(stack.pid(name)?)?))).collect()
}

fn peak_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Sets the peaks to the memory in use (proc(5), `clear_refs`).
fn reset_peaks(stack: &PrivateStack) -> Result<()> {
    for name in stack.names() {
        fs::write(format!("/proc/{}/clear_refs", stack.pid(name)?), "5")?;
    }
    Ok(())
}
