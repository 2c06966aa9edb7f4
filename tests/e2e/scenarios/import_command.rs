//! `assay import`: reports, exit codes, interruption and resumption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::harness::{Cases, LIMIT, Stack, Table, conversation, edited, finishes, set, unset};

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
    let file = write(stack, "good.jsonl", &numbered("good", 5))?;
    // Windows line ends and empty lines are accepted.
    fs::write(&file, fs::read_to_string(&file)?.replace('\n', "\r\n\r\n"))?;
    finishes(&import(stack, &file, &[]).await?, 0, (5, 0, 0))?;
    finishes(&import(stack, &file, &[]).await?, 0, (0, 5, 0))?;
    let rest: Vec<_> = siblings(&file)?.into_iter().filter(|path| *path != file).collect();
    ensure!(rest.is_empty(), "left behind: {rest:?}");
    Ok(())
}

/// With `--wait` no evaluation is pending when the command ends.
async fn waiting(stack: &Stack) -> Result<()> {
    let bodies = numbered("waiting", 40);
    let file = write(stack, "waiting.jsonl", &bodies)?;
    let output = import(stack, &file, &["--wait"]).await?;
    finishes(&output, 0, (40, 0, 0))?;
    let found = String::from_utf8_lossy(&output.stdout);
    ensure!(found.contains("scored after"), "{found}");
    let id = |body: &Value| body["ticket_id"].as_str().map(str::to_owned).context("an id");
    let wanted = bodies.iter().map(id).collect::<Result<Vec<_>>>()?;
    let api = stack.api()?;
    let export = api.export(&json!({"kind": "axis"})).await?;
    let table = Table::read(&api.file(&export).await?)?;
    let there = table.column("external_ticket_id");
    let missing: Vec<_> = wanted.iter().filter(|id| !there.contains(&id.as_str())).collect();
    ensure!(missing.is_empty(), "not in a later export: {missing:?}");
    // No tickets to wait for.
    finishes(&import(stack, &file, &["--wait"]).await?, 0, (0, 40, 0))
}

async fn refused_lines(stack: &Stack) -> Result<()> {
    let mut bodies = numbered("mixed", 6);
    bodies[1] = edited(bodies[1].clone(), &[unset("/messages/0/author")]);
    bodies[3] = edited(
        bodies[3].clone(),
        &[set("/messages/1/author", json!({"type": "ai", "external_id": "nobody"}))],
    );
    let file = write(stack, "mixed.jsonl", &bodies)?;
    fs::write(&file, fs::read_to_string(&file)? + "{\"ticket_id\":\n")?;
    let output = import(stack, &file, &[]).await?;
    finishes(&output, 3, (4, 0, 3))?;
    let refused = file.with_file_name("mixed.jsonl.refused.jsonl");
    ensure!(
        String::from_utf8_lossy(&output.stdout).contains(refused.to_str().context("text")?),
        "{output:?}"
    );
    let lines = fs::read_to_string(&refused)?;
    let lines: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let found = |index: usize| {
        (lines[index]["line"].clone(), lines[index]["status"].clone(), lines[index]["code"].clone())
    };
    ensure!(lines.len() == 3, "{lines:?}");
    ensure!(found(0) == (json!(2), json!(400), json!("invalid-request")), "{}", lines[0]);
    ensure!(lines[0]["errors"][0]["pointer"] == "/messages/0/author", "{}", lines[0]);
    ensure!(found(1) == (json!(4), json!(404), json!("unknown-agent")), "{}", lines[1]);
    ensure!(found(2) == (json!(7), json!(400), json!("malformed-json")), "{}", lines[2]);
    let body: Value = serde_json::from_str(lines[0]["body"].as_str().context("body")?)?;
    ensure!(body == bodies[1], "the refused body is not in the file: {}", lines[0]);
    // Corrected lines are accepted; --refused names another file.
    let mended = write(stack, "mended.jsonl", &numbered("mixed", 6))?;
    let elsewhere = stack.folder().join("elsewhere.jsonl");
    let output = import(stack, &mended, &["--refused", elsewhere.to_str().context("text")?]).await?;
    finishes(&output, 0, (2, 4, 0))?;
    ensure!(!elsewhere.exists(), "a file of refusals without a refusal");
    // No other file is replaced.
    let before = fs::read(&mended)?;
    let output = import(stack, &mended, &["--refused", mended.to_str().context("text")?]).await?;
    fails(&output, &["mended.jsonl is not a file of refused lines", "--refused"])?;
    ensure!(fs::read(&mended)? == before, "the input was changed");
    Ok(())
}

async fn twice_in_a_file(stack: &Stack) -> Result<()> {
    let mut bodies = numbered("twice", 3);
    bodies.extend(numbered("twice", 3));
    let file = write(stack, "twice.jsonl", &bodies)?;
    finishes(&import(stack, &file, &["--concurrency", "1"]).await?, 0, (3, 3, 0))
}

async fn agents(stack: &Stack) -> Result<()> {
    let bodies: Vec<Value> = numbered("with-agent", 3)
        .into_iter()
        .map(|body| {
            edited(body, &[set("/messages/1/author", json!({"type": "ai", "external_id": "imported"}))])
        })
        .collect();
    let file = write(stack, "with-agent.jsonl", &bodies)?;
    let agents = write(stack, "agents.jsonl", &[json!({"external_id": "imported", "name": "Imported"})])?;
    let agents = agents.to_str().context("text")?;
    finishes(&import(stack, &file, &["--agents", agents]).await?, 0, (3, 0, 0))?;
    // Existing agents are skipped.
    finishes(&import(stack, &file, &["--agents", agents]).await?, 0, (0, 3, 0))?;
    let bad = write(stack, "bad-agents.jsonl", &[json!({"external_id": "x"})])?;
    let output = import(stack, &file, &["--agents", bad.to_str().context("text")?]).await?;
    fails(&output, &["line 1", "/name"])
}

async fn standard_input(stack: &Stack) -> Result<()> {
    let mut command = stack.client(&["import", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("no standard input")?;
    let mut text = lines(&numbered("stdin", 4));
    text.push_str("{}\n");
    input.write_all(text.as_bytes()).await?;
    drop(input);
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await??;
    finishes(&output, 3, (4, 0, 1))?;
    let refused = fs::read_to_string(stack.folder().join("stdin.refused.jsonl"))?;
    ensure!(refused.lines().count() == 1, "{refused}");
    Ok(())
}

async fn wrong_key(stack: &Stack) -> Result<()> {
    let file = write(stack, "wrong-key.jsonl", &numbered("wrong-key", 3))?;
    let path = file.to_str().context("text")?;
    let url = ["--url", stack.base_url()];
    let refused = stack
        .assay(&[&["import", path, "--key", "no-such-key-but-long-enough-to-ask"], &url[..]].concat())
        .output()
        .await?;
    fails(&refused, &["API key"])?;
    let missing = stack.assay(&[&["import", path], &url[..]].concat()).output().await?;
    fails(&missing, &["--key", "ASSAY_API_KEY"])?;
    let scoped = stack.create_key(stack.organization(), &["--scopes", "exports"]).await?;
    let scoped = stack.assay(&[&["import", path, "--key", &scoped], &url[..]].concat()).output().await?;
    fails(&scoped, &["assess"])?;
    // Nothing was imported.
    finishes(&import(stack, &file, &[]).await?, 0, (3, 0, 0))
}

async fn unreachable_service(stack: &Stack) -> Result<()> {
    let file = write(stack, "nobody.jsonl", &numbered("nobody", 3))?;
    let address = format!("http://127.0.0.1:{}", assay_testkit::free_port()?);
    let arguments =
        ["import", file.to_str().context("text")?, "--url", &address, "--key", "k", "--attempts", "2"];
    fails(&stack.assay(&arguments).output().await?, &["line 1", &address, "start the same command again"])
}

async fn wrong_usage(stack: &Stack) -> Result<()> {
    let output = stack.assay(&["import"]).output().await?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let missing = stack.folder().join("missing.jsonl");
    fails(&import(stack, &missing, &[]).await?, &["missing.jsonl"])
}

/// Killed in the middle and resumed: every line is accepted once, and the report covers all of them.
async fn interruption(stack: &Stack) -> Result<()> {
    let file = write(stack, "many.jsonl", &numbered("many", MANY))?;
    let progress = file.with_file_name("many.jsonl.progress.json");
    let mut child = stack.assay(&arguments(stack, &file, &["--concurrency", "16"])?).spawn()?;
    let interrupted = tokio::time::timeout(LIMIT, async {
        loop {
            let done = fs::read(&progress).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if done.is_some_and(|done| done["lines"].as_u64() >= Some(200)) {
                return anyhow::Ok(());
            }
            ensure!(child.try_wait()?.is_none(), "the import ended before it could be interrupted");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    interrupted.await??;
    child.kill().await?;
    finishes(&import(stack, &file, &["--concurrency", "16"]).await?, 0, (MANY, 0, 0))?;
    ensure!(!progress.exists(), "the progress of a finished import is left behind");
    finishes(&import(stack, &file, &["--concurrency", "16"]).await?, 0, (0, MANY, 0))
}

/// `--wait` knows the conversations of its own run only.
async fn waiting_after_interruption(stack: &Stack) -> Result<()> {
    let bodies = numbered("resumed", 3);
    let file = write(stack, "resumed.jsonl", &bodies)?;
    let first = bodies[0].to_string();
    // The progress of an import that was interrupted after the first line.
    let done = json!({"run": "0", "destination": destination(stack), "lines": 1, "bytes": first.len() + 1,
        "last_fingerprint": hex::encode(Sha256::digest(first.as_bytes())),
        "summary": {"accepted": 1, "duplicate": 0, "refused": 0}});
    fs::write(file.with_file_name("resumed.jsonl.progress.json"), done.to_string())?;
    let resumed = import(stack, &file, &["--wait"]).await?;
    finishes(&resumed, 0, (3, 0, 0))?;
    let notice = String::from_utf8_lossy(&resumed.stderr);
    ensure!(notice.contains("accepted before the interruption, not waited for: 1"), "{notice:?}");
    Ok(())
}

/// An interrupted import cannot be resumed with a changed file or another destination.
async fn changed_file(stack: &Stack) -> Result<()> {
    let file = write(stack, "changed.jsonl", &numbered("changed", 3))?;
    let progress = file.with_file_name("changed.jsonl.progress.json");
    let done = |destination: &str| {
        json!({"run": "0", "destination": destination, "lines": 2, "bytes": 10, "last_fingerprint": "0",
            "summary": {"accepted": 2, "duplicate": 0, "refused": 0}})
    };
    fs::write(&progress, done("elsewhere").to_string())?;
    fails(
        &import(stack, &file, &[]).await?,
        &["another address or with another key", "changed.jsonl.progress.json"],
    )?;
    fs::write(&progress, done(&destination(stack)).to_string())?;
    fails(&import(stack, &file, &[]).await?, &["was changed", "changed.jsonl.progress.json"])
}

/// The destination in the progress of an import with the key of the stack.
fn destination(stack: &Stack) -> String {
    let destination = format!("{}\n{}", stack.base_url(), stack.key());
    hex::encode(Sha256::digest(destination.as_bytes()))
}

fn numbered(name: &str, count: usize) -> Vec<Value> {
    (0..count).map(|number| conversation(&format!("{name}-{number}"))).collect()
}

fn lines(bodies: &[Value]) -> String {
    bodies.iter().map(|body| format!("{body}\n")).collect()
}

fn write(stack: &Stack, name: &str, bodies: &[Value]) -> Result<PathBuf> {
    let file = stack.folder().join(name);
    fs::write(&file, lines(bodies))?;
    Ok(file)
}

/// The files in the folder of `file` whose path contains its name.
fn siblings(file: &Path) -> Result<Vec<PathBuf>> {
    let (folder, name) = (file.parent().context("folder")?, file.file_name().context("name")?);
    let paths: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let name = name.to_string_lossy().into_owned();
    Ok(paths.into_iter().filter(|path| path.to_string_lossy().contains(&name)).collect())
}

fn arguments<'a>(stack: &'a Stack, file: &'a Path, more: &[&'a str]) -> Result<Vec<&'a str>> {
    let file = file.to_str().context("text")?;
    Ok([&["import", file, "--url", stack.base_url(), "--key", stack.key()], more].concat())
}

async fn import(stack: &Stack, file: &Path, more: &[&str]) -> Result<Output> {
    let mut command = stack.assay(&arguments(stack, file, more)?);
    Ok(tokio::time::timeout(LIMIT, command.output()).await??)
}

/// Exit code 1, and a message on standard error with all of these parts.
fn fails(output: &Output, messages: &[&str]) -> Result<()> {
    ensure!(output.status.code() == Some(1), "exit code {:?} instead of 1: {output:?}", output.status.code());
    let message = String::from_utf8_lossy(&output.stderr);
    for part in messages {
        ensure!(message.contains(part), "{part:?} is not in {message:?}");
    }
    Ok(())
}
