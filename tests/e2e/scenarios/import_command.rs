//! `assay import`: reports, exit codes, interruption and resumption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::harness::{
    Cases, Stack, WAIT_LIMIT, by_ai, conversation, edited, exits_with, exits_with_summary, import_command,
    import_file, progress, read_lines, set, text, unset, until_progress, write_lines,
};

/// Lines of the import that is interrupted.
const MANY: usize = 1_500;

/// Reports, exit codes, standard input, interruption.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("a good file", good_file(stack).await);
    cases.check("refused lines", refused_lines(stack).await);
    cases.check("waiting for scores", waiting(stack).await);
    cases.check("a conversation twice in a file", twice_in_a_file(stack).await);
    cases.check("agents", agents(stack).await);
    cases.check("standard input", standard_input(stack).await);
    cases.check("a wrong key", wrong_key(stack).await);
    cases.check("unreachable service", unreachable_service(stack).await);
    cases.check("wrong usage", wrong_usage(stack).await);
    cases.check("an interruption", interruption(stack).await);
    cases.check("waiting after an interruption", waiting_after_interruption(stack).await);
    cases.check("a changed file", changed_file(stack).await);
    cases.finish()
}

/// Accepted at first, duplicates afterwards.
async fn good_file(stack: &Stack) -> Result<()> {
    let file = write_lines(stack, "good.jsonl", &numbered("good", 5))?;
    // Windows line ends and empty lines are accepted.
    fs::write(&file, fs::read_to_string(&file)?.replace('\n', "\r\n\r\n"))?;
    exits_with_summary(&import_file(stack, &file, &[]).await?, 0, "5 accepted, 0 duplicate, 0 refused")?;
    exits_with_summary(&import_file(stack, &file, &[]).await?, 0, "0 accepted, 5 duplicate, 0 refused")?;
    let rest = siblings(&file)?;
    ensure!(rest.is_empty(), "left behind: {rest:?}");
    Ok(())
}

/// With `--wait` no evaluation is pending when the command ends.
async fn waiting(stack: &Stack) -> Result<()> {
    let bodies = numbered("waiting", 40);
    let file = write_lines(stack, "waiting.jsonl", &bodies)?;
    let output = import_file(stack, &file, &["--wait"]).await?;
    exits_with_summary(&output, 0, "40 accepted, 0 duplicate, 0 refused")?;
    let found = String::from_utf8_lossy(&output.stdout);
    ensure!(found.contains("scored after"), "{found}");
    let table = stack.api()?.table(&json!({"kind": "axis"})).await?;
    let there = table.column("external_ticket_id");
    let is_missing = |body: &&Value| !there.iter().any(|id| body["ticket_id"] == **id);
    let missing: Vec<_> = bodies.iter().filter(is_missing).collect();
    ensure!(missing.is_empty(), "not in a later export: {missing:?}");
    // No tickets to wait for.
    let output = import_file(stack, &file, &["--wait"]).await?;
    exits_with_summary(&output, 0, "0 accepted, 40 duplicate, 0 refused")
}

async fn refused_lines(stack: &Stack) -> Result<()> {
    let mut bodies = numbered("mixed", 6);
    bodies[1] = edited(bodies[1].clone(), &[unset("/messages/0/author")]);
    bodies[3] = by_ai("mixed-3", "nobody");
    let file = write_lines(stack, "mixed.jsonl", &bodies)?;
    fs::write(&file, fs::read_to_string(&file)? + "{\"ticket_id\":\n")?;
    let output = import_file(stack, &file, &[]).await?;
    exits_with_summary(&output, 3, "4 accepted, 0 duplicate, 3 refused")?;
    let refused = file.with_file_name("mixed.jsonl.refused.jsonl");
    ensure!(
        String::from_utf8_lossy(&output.stdout).contains(refused.to_str().context("text")?),
        "{output:?}"
    );
    let lines = read_lines(&refused)?;
    let found = |index: usize| {
        (lines[index]["line"].clone(), lines[index]["status"].clone(), lines[index]["code"].clone())
    };
    ensure!(lines.len() == 3, "{lines:?}");
    ensure!(found(0) == (json!(2), json!(400), json!("invalid-request")), "{}", lines[0]);
    ensure!(lines[0]["errors"][0]["pointer"] == "/messages/0/author", "{}", lines[0]);
    ensure!(found(1) == (json!(4), json!(404), json!("unknown-agent")), "{}", lines[1]);
    ensure!(found(2) == (json!(7), json!(400), json!("malformed-json")), "{}", lines[2]);
    let body: Value = serde_json::from_str(&text(&lines[0], "body")?)?;
    ensure!(body == bodies[1], "the refused body is not in the file: {}", lines[0]);
    // Corrected lines are accepted; --refused names another file.
    let mended = write_lines(stack, "mended.jsonl", &numbered("mixed", 6))?;
    let elsewhere = stack.folder().join("elsewhere.jsonl");
    let output = import_file(stack, &mended, &["--refused", elsewhere.to_str().context("text")?]).await?;
    exits_with_summary(&output, 0, "2 accepted, 4 duplicate, 0 refused")?;
    ensure!(!elsewhere.exists(), "a file of refusals without a refusal");
    // --refused does not overwrite a file that holds no refused lines.
    let before = fs::read(&mended)?;
    let output = import_file(stack, &mended, &["--refused", mended.to_str().context("text")?]).await?;
    exits_with(&output, 1, &["mended.jsonl is not a file of refused lines", "--refused"])?;
    ensure!(fs::read(&mended)? == before, "the input was changed");
    Ok(())
}

async fn twice_in_a_file(stack: &Stack) -> Result<()> {
    let mut bodies = numbered("twice", 3);
    bodies.extend(numbered("twice", 3));
    let file = write_lines(stack, "twice.jsonl", &bodies)?;
    let output = import_file(stack, &file, &["--concurrency", "1"]).await?;
    exits_with_summary(&output, 0, "3 accepted, 3 duplicate, 0 refused")
}

async fn agents(stack: &Stack) -> Result<()> {
    let bodies: Vec<Value> =
        (0..3).map(|number| by_ai(&format!("with-agent-{number}"), "imported")).collect();
    let file = write_lines(stack, "with-agent.jsonl", &bodies)?;
    let agents =
        write_lines(stack, "agents.jsonl", &[json!({"external_id": "imported", "name": "Imported"})])?;
    let agents = agents.to_str().context("text")?;
    let output = import_file(stack, &file, &["--agents", agents]).await?;
    exits_with_summary(&output, 0, "3 accepted, 0 duplicate, 0 refused")?;
    // Existing agents are skipped.
    let output = import_file(stack, &file, &["--agents", agents]).await?;
    exits_with_summary(&output, 0, "0 accepted, 3 duplicate, 0 refused")?;
    let bad = write_lines(stack, "bad-agents.jsonl", &[json!({"external_id": "x"})])?;
    let output = import_file(stack, &file, &["--agents", bad.to_str().context("text")?]).await?;
    exits_with(&output, 1, &["line 1", "/name"])
}

async fn standard_input(stack: &Stack) -> Result<()> {
    let mut command = stack.client(&["import", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    for body in numbered("stdin", 4).into_iter().chain([json!({})]) {
        input.write_all(format!("{body}\n").as_bytes()).await?;
    }
    drop(input);
    let output = tokio::time::timeout(WAIT_LIMIT, child.wait_with_output()).await??;
    exits_with_summary(&output, 3, "4 accepted, 0 duplicate, 1 refused")?;
    let refused = fs::read_to_string(stack.folder().join("stdin.refused.jsonl"))?;
    ensure!(refused.lines().count() == 1, "{refused}");
    Ok(())
}

async fn wrong_key(stack: &Stack) -> Result<()> {
    let file = write_lines(stack, "wrong-key.jsonl", &numbered("wrong-key", 3))?;
    let path = file.to_str().context("text")?;
    let scoped = stack.create_key(stack.organization(), &["--scopes", "exports"]).await?;
    for (key, messages) in [
        (&["--key", "no-such-key-but-long-enough-to-ask"][..], &["API key"][..]),
        (&[], &["--key", "ASSAY_API_KEY"]),
        (&["--key", &scoped], &["assess"]),
    ] {
        let arguments = [&["import", path, "--url", stack.base_url()], key].concat();
        exits_with(&stack.assay(&arguments).output().await?, 1, messages)?;
    }
    // Nothing was imported.
    exits_with_summary(&import_file(stack, &file, &[]).await?, 0, "3 accepted, 0 duplicate, 0 refused")
}

async fn unreachable_service(stack: &Stack) -> Result<()> {
    let file = write_lines(stack, "nobody.jsonl", &numbered("nobody", 3))?;
    let address = format!("http://127.0.0.1:{}", assay_testkit::free_port()?);
    let arguments =
        ["import", file.to_str().context("text")?, "--url", &address, "--key", "k", "--attempts", "2"];
    let output = stack.assay(&arguments).output().await?;
    exits_with(&output, 1, &["line 1", &address, "start the same command again"])
}

async fn wrong_usage(stack: &Stack) -> Result<()> {
    exits_with(&stack.assay(&["import"]).output().await?, 2, &[])?;
    let missing = stack.folder().join("missing.jsonl");
    exits_with(&import_file(stack, &missing, &[]).await?, 1, &["missing.jsonl"])
}

/// Killed in the middle and resumed: every line is accepted once, and the report covers all of them.
async fn interruption(stack: &Stack) -> Result<()> {
    let file = write_lines(stack, "many.jsonl", &numbered("many", MANY))?;
    let progress = file.with_file_name("many.jsonl.progress.json");
    let mut child = import_command(stack, &file, &["--concurrency", "16"])?.spawn()?;
    until_progress(&progress, 200).await?;
    ensure!(child.try_wait()?.is_none(), "the import ended before it could be interrupted");
    child.kill().await?;
    let output = import_file(stack, &file, &["--concurrency", "16"]).await?;
    exits_with_summary(&output, 0, &format!("{MANY} accepted, 0 duplicate, 0 refused"))?;
    ensure!(!progress.exists(), "the progress of a finished import is left behind");
    let output = import_file(stack, &file, &["--concurrency", "16"]).await?;
    exits_with_summary(&output, 0, &format!("0 accepted, {MANY} duplicate, 0 refused"))
}

/// `--wait` knows the conversations of its own run only.
async fn waiting_after_interruption(stack: &Stack) -> Result<()> {
    let bodies = numbered("resumed", 3);
    let file = write_lines(stack, "resumed.jsonl", &bodies)?;
    let first = bodies[0].to_string();
    // The first line with its line end.
    let (lines, bytes, last_fingerprint) = (1, first.len() + 1, hex::encode(Sha256::digest(&first)));
    let saved = progress(stack, lines, bytes, &last_fingerprint);
    write_lines(stack, "resumed.jsonl.progress.json", &[saved])?;
    let resumed = import_file(stack, &file, &["--wait"]).await?;
    exits_with_summary(&resumed, 0, "3 accepted, 0 duplicate, 0 refused")?;
    exits_with(&resumed, 0, &["accepted before the interruption, not waited for: 1"])
}

/// An interrupted import cannot be resumed with a changed file or another destination.
async fn changed_file(stack: &Stack) -> Result<()> {
    const PROGRESS: &str = "changed.jsonl.progress.json";
    let file = write_lines(stack, "changed.jsonl", &numbered("changed", 3))?;
    let (lines, bytes, last_fingerprint) = (2, 10, "0");
    let saved = progress(stack, lines, bytes, last_fingerprint);
    write_lines(stack, PROGRESS, &[edited(saved.clone(), &[set("/destination", "elsewhere")])])?;
    let elsewhere = import_file(stack, &file, &[]).await?;
    exits_with(&elsewhere, 1, &["another address or with another key", PROGRESS])?;
    write_lines(stack, PROGRESS, &[saved])?;
    exits_with(&import_file(stack, &file, &[]).await?, 1, &["was changed", PROGRESS])
}

fn numbered(name: &str, count: usize) -> Vec<Value> {
    (0..count).map(|number| conversation(&format!("{name}-{number}"))).collect()
}

/// The other files in the folder of `file` whose names contain its name.
fn siblings(file: &Path) -> Result<Vec<PathBuf>> {
    let (folder, name) = (file.parent().context("folder")?, file.file_name().context("name")?);
    let name = name.to_str().context("text")?;
    let paths: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_sibling = |path: &PathBuf| path != file && name_of(path).contains(name);
    Ok(paths.into_iter().filter(is_sibling).collect())
}
