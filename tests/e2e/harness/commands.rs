//! Runs the commands of a client, and checks what they report.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::stack::Stack;
use super::{WAIT_LIMIT, until};

/// Runs the executable as a client of the stack.
pub async fn run_client(stack: &Stack, arguments: &[&str]) -> Result<Output> {
    Ok(tokio::time::timeout(WAIT_LIMIT, stack.client(arguments).output()).await??)
}

/// `assay import FILE …`.
pub fn import_command(stack: &Stack, file: &Path, more: &[&str]) -> Result<Command> {
    Ok(stack.client(&[&["import", file.to_str().context("text")?], more].concat()))
}

/// Runs `assay import FILE …`.
pub async fn import_file(stack: &Stack, file: &Path, more: &[&str]) -> Result<Output> {
    Ok(tokio::time::timeout(WAIT_LIMIT, import_command(stack, file, more)?.output()).await??)
}

/// Checks the exit code, and that standard error has all of these parts.
pub fn exits_with(output: &Output, code: i32, messages: &[&str]) -> Result<()> {
    let found = output.status.code();
    ensure!(found == Some(code), "exit code {found:?} instead of {code}: {output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    for part in messages {
        ensure!(message.contains(part), "{part:?} is not in {message:?}");
    }
    Ok(())
}

/// Checks the exit code of `assay import`, and that its output begins with this summary.
pub fn exits_with_summary(output: &Output, code: i32, summary: &str) -> Result<()> {
    exits_with(output, code, &[])?;
    let summary = format!("{summary} in ");
    let is_first = String::from_utf8_lossy(&output.stdout).starts_with(&summary);
    ensure!(is_first, "{summary:?} is not in {output:?}");
    Ok(())
}

/// Writes a file with one value per line into the folder of the scenario.
pub fn write_lines(stack: &Stack, name: &str, values: &[Value]) -> Result<PathBuf> {
    let file = stack.folder().join(name);
    fs::write(&file, values.iter().map(|value| format!("{value}\n")).collect::<String>())?;
    Ok(file)
}

/// Reads a file with one value per line.
pub fn read_lines(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The progress file of an import, with the key of the stack, that was interrupted after `lines` accepted lines of `bytes` bytes.
pub fn progress(stack: &Stack, lines: usize, bytes: usize, last_fingerprint: &str) -> Value {
    let destination = format!("{}\n{}", stack.base_url(), stack.key());
    json!({
        "run": "0", "destination": hex::encode(Sha256::digest(destination)), "lines": lines, "bytes": bytes,
        "last_fingerprint": last_fingerprint, "summary": {"accepted": lines, "duplicate": 0, "refused": 0},
    })
}

/// Waits until an import has saved that so many lines are done.
pub async fn until_progress(progress: &Path, lines: u64) -> Result<()> {
    until(&format!("{lines} lines in {}", progress.display()), async || {
        let done = fs::read(progress).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        Ok(done.is_some_and(|done| done["lines"].as_u64() >= Some(lines)).then_some(()))
    })
    .await
}
