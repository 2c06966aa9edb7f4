//! The README's commands, unchanged, work as described.

use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::harness::{Stack, Table, until};

const README: &str = include_str!("../../../README.md");
const PICTURE: &str = include_str!("../../../proto-docs/picture.svg");

/// Conversations in the bundled sample, `examples/conversations.jsonl`.
const SAMPLE_CONVERSATIONS: usize = 12;
/// External ticket id of the one that the picture shows.
const PICTURED: &str = "T-1002";

/// Imports the sample, fetches its scores, shows a ticket; then the same by curl for one conversation.
pub async fn run(stack: &Stack) -> Result<()> {
    let commands = block_with("ASSAY_API_KEY=asy_…")?.replace("asy_…", stack.key());
    let shown = sh(stack, &commands).await?;
    let summary = format!("{SAMPLE_CONVERSATIONS} accepted, 0 duplicate, 0 refused");
    ensure!(shown.contains(&summary), "{shown}");
    ensure!(shown.contains("Resolution accuracy") && shown.contains("\n    > "), "no reasons: {shown}");
    let table = Table::read(&std::fs::read(stack.folder().join("axis.csv"))?)?;
    let rows = table.column("ticket_id").len();
    ensure!(rows == SAMPLE_CONVERSATIONS, "{rows} rows");

    let ticket = &table.row("external_ticket_id", PICTURED)?["ticket_id"];
    let shown = sh(stack, &format!("target/release/assay tickets show {ticket}")).await?;
    for line in pictured_lines() {
        ensure!(shown.contains(&line), "proto-docs/picture.svg shows \"{line}\", the command: {shown}");
    }
    by_curl(stack).await
}

async fn by_curl(stack: &Stack) -> Result<()> {
    let block = block_with("curl -s http://127.0.0.1:8080/v1/assess")?;
    let commands = block.split_once("# with the \"id\" of the answer");
    let (import, read) = commands.context("the block does not hold two commands")?;
    let key = format!("ASSAY_API_KEY={}\n", stack.key());
    let receipt: Value = serde_json::from_str(&sh(stack, &format!("{key}{import}")).await?)?;
    let id = receipt["id"].as_str().with_context(|| receipt.to_string())?;
    let read = format!("{key}{}", read.replace("/ID/", &format!("/{id}/")));
    until("the evaluation by curl", async || {
        let evaluation: Value = serde_json::from_str(&sh(stack, &read).await?)?;
        match evaluation["status"].as_str() {
            Some("pending") => Ok(None),
            Some("scored" | "not_applicable") => Ok(Some(())),
            // A problem's status is a number.
            _ => bail!("neither pending nor evaluated: {evaluation}"),
        }
    })
    .await
}

/// The code block that holds this text.
fn block_with(text: &str) -> Result<String> {
    let blocks = README.split("```").skip(1).step_by(2);
    let block = blocks.into_iter().find(|block| block.contains(text)).with_context(|| text.to_owned())?;
    Ok(block.strip_prefix("sh").unwrap_or(block).to_owned())
}

/// The lines of the picture, without the first two: they hold the ticket's id, which changes.
fn pictured_lines() -> Vec<String> {
    let texts = PICTURE.lines().filter(|line| line.starts_with("<text"));
    let texts = texts.filter_map(|line| line.split_once('>')?.1.strip_suffix("</text>"));
    let plain = texts.map(|text| text.replace("&#160;", " ").replace("&gt;", ">").replace("&#x27;", "'"));
    plain.skip(2).collect()
}

/// Runs the commands in a shell next to the sample, on this stack instead of port 8080; returns the output.
async fn sh(stack: &Stack, commands: &str) -> Result<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize()?;
    let link = stack.folder().join("examples");
    if !link.exists() {
        std::os::unix::fs::symlink(examples, link)?;
    }
    let commands = commands
        .replace("target/release/assay", env!("CARGO_BIN_EXE_assay"))
        .replace("http://127.0.0.1:8080", stack.base_url());
    let Output { status, stdout, stderr } = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands])
        .env("ASSAY_URL", stack.base_url())
        .env("ASSAY_API_KEY", stack.key())
        .current_dir(stack.folder())
        .output()
        .await?;
    let (stdout, stderr) = (String::from_utf8(stdout)?, String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{commands}: {stdout}{stderr}");
    Ok(stdout)
}
