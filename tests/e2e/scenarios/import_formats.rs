//! `assay import --format …`: helpdesk formats, and conversations that are too long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{
    Cases, Stack, Table, WAIT_LIMIT, conversation, edited, exits_with, exits_with_summary, import_command,
    import_file, messages, progress, read_lines, run_client, set, text, until, until_progress, write_lines,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/helpdesks");

/// Helpdesks, long conversations, two imports at once, interruption by a signal.
pub async fn run(stack: &Stack) -> Result<()> {
    let mut cases = Cases::default();
    cases.check("Zendesk", zendesk(stack).await);
    cases.check("Intercom", intercom(stack).await);
    cases.check("a page with refused conversations", refused_in_a_page(stack).await);
    cases.check("long conversations", too_long(stack).await);
    cases.check("a packed file", packed(stack).await);
    cases.check("a pipe", pipe(stack).await);
    cases.check("wrong usage", wrong_usage(stack).await);
    cases.check("two at once", two_at_once(stack).await);
    cases.check("changed format options", changed_format_options(stack).await);
    cases.check("a signal", interrupted(stack).await);
    cases.finish()
}

/// The example file is imported, and the export names who answered.
async fn zendesk(stack: &Stack) -> Result<()> {
    stack.api()?.register("parcel-bot").await?;
    let file = copied(stack, "zendesk.jsonl")?;
    let options =
        ["--format", "zendesk", "--account", "acme", "--ai-agent", "parcel-bot", "--ai-author", "9100"];
    exits_with_summary(&import_file(stack, &file, &options).await?, 0, "3 accepted, 0 duplicate, 0 refused")?;
    exits_with_summary(&import_file(stack, &file, &options).await?, 0, "0 accepted, 3 duplicate, 0 refused")?;
    let table = exported(stack, &["4711", "4712", "4713"]).await?;
    let row = table.row("external_ticket_id", "4711")?;
    for (column, value) in [
        ("source", "zendesk"),
        ("source_account_id", "acme"),
        ("subject", "Parcel not here"),
        ("conversation_started_at", "2026-03-02T08:15:00.000Z"),
        ("ai_involvement", "ai_only"),
        ("customer_messages", "2"),
        ("ai_messages", "1"),
        ("internal_comments", "1"),
    ] {
        ensure!(row[column] == value, "{column} is {:?}", row[column]);
    }
    ensure!(table.row("external_ticket_id", "4712")?["ai_involvement"] == "no_ai", "ticket 4712");
    Ok(())
}

async fn intercom(stack: &Stack) -> Result<()> {
    stack.api()?.register("fin").await?;
    let file = copied(stack, "intercom.json")?;
    let output = import_file(stack, &file, &["--format", "intercom"]).await?;
    exits_with_summary(&output, 3, "0 accepted, 0 duplicate, 1 refused")?;
    let refused = fs::read_to_string(file.with_file_name("intercom.json.refused.jsonl"))?;
    ensure!(refused.contains("--ai-agent") && refused.contains("unmappable"), "{refused}");
    let output = import_file(stack, &file, &["--format", "intercom", "--ai-agent", "fin"]).await?;
    exits_with_summary(&output, 0, "1 accepted, 0 duplicate, 0 refused")?;
    let table = exported(stack, &["5501"]).await?;
    let row = table.row("external_ticket_id", "5501")?;
    ensure!(row["ai_involvement"] == "ai_assisted" && row["ai_tools"] == "[\"intercom\"]", "{row:?}");
    ensure!(row["handoff_state"] == "completed", "{row:?}");
    Ok(())
}

/// Refusals name the line and the position in its page.
async fn refused_in_a_page(stack: &Stack) -> Result<()> {
    let ticket = |id: u64, author: u64| {
        json!({"id": id, "requester_id": 1, "comments": [
            {"id": 1, "author_id": author, "created_at": "2026-01-01T00:00:00Z", "body": "Hello?"}]})
    };
    let page = json!({"tickets": [ticket(6001, 1), ticket(6002, 2), ticket(6003, 1)]});
    let file = stack.folder().join("page.jsonl");
    fs::write(&file, format!("{}\n{page}\nno JSON\n", ticket(6000, 1)))?;
    let output = import_file(stack, &file, &["--format", "zendesk"]).await?;
    exits_with_summary(&output, 3, "3 accepted, 0 duplicate, 2 refused")?;
    let lines = read_lines(&file.with_file_name("page.jsonl.refused.jsonl"))?;
    ensure!((&lines[0]["line"], &lines[0]["item"]) == (&json!(2), &json!(2)), "{}", lines[0]);
    ensure!(lines[0]["detail"].as_str().is_some_and(|detail| detail.contains("author 2")), "{}", lines[0]);
    let body: Value = serde_json::from_str(&text(&lines[0], "body")?)?;
    ensure!(body == ticket(6002, 2), "{body}");
    ensure!((&lines[1]["line"], lines[1].get("item")) == (&json!(3), None), "{}", lines[1]);
    Ok(())
}

/// Keeps the first ten and the last forty messages; reported for each line and in the summary.
async fn too_long(stack: &Stack) -> Result<()> {
    let long = edited(conversation("long"), &[set("/messages", messages(63))]);
    let file = write_lines(stack, "long.jsonl", &[conversation("not-long"), long])?;
    let output = import_file(stack, &file, &[]).await?;
    exits_with_summary(&output, 0, "2 accepted, 0 duplicate, 0 refused")?;
    let (notices, summary) =
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    ensure!(
        notices.contains("line 2: ") && notices.contains("13 left out") && !notices.contains("line 1"),
        "{notices}"
    );
    ensure!(
        summary.contains("1 had more than 50 messages") && summary.contains("13 messages were left out"),
        "{summary}"
    );
    let table = exported(stack, &["long"]).await?;
    ensure!(table.row("external_ticket_id", "long")?["customer_messages"] == "50", "not fifty messages");
    Ok(())
}

async fn packed(stack: &Stack) -> Result<()> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, format!("{}\n", conversation("packed")).as_bytes())?;
    let file = stack.folder().join("packed.jsonl.gz");
    fs::write(&file, packed.finish()?)?;
    exits_with_summary(&import_file(stack, &file, &[]).await?, 0, "1 accepted, 0 duplicate, 0 refused")?;
    let scored = stack.assay(&["score", file.to_str().context("text")?]).output().await?;
    let evaluation: Value = serde_json::from_slice(&scored.stdout)?;
    ensure!(evaluation["external_ticket_id"] == "packed", "{evaluation}");
    Ok(())
}

/// A named pipe, as in `<(…)`: read once, without a checkpoint.
async fn pipe(stack: &Stack) -> Result<()> {
    let pipe = stack.folder().join("pipe");
    ensure!(tokio::process::Command::new("mkfifo").arg(&pipe).status().await?.success(), "mkfifo");
    let mut command = import_command(stack, &pipe, &[])?;
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    tokio::fs::write(&pipe, format!("{}\n", conversation("pipe"))).await?;
    let output = tokio::time::timeout(WAIT_LIMIT, child.wait_with_output()).await??;
    exits_with_summary(&output, 0, "1 accepted, 0 duplicate, 0 refused")?;
    ensure!(!pipe.with_file_name("pipe.progress.json").exists(), "a pipe cannot be resumed");
    Ok(())
}

async fn wrong_usage(stack: &Stack) -> Result<()> {
    let file = copied(stack, "zendesk.jsonl")?;
    for (options, message) in [
        (&["--account", "a"][..], "--format zendesk and intercom"),
        (&["--format", "zendesk", "--ai-agent", "a"][..], "--ai-author"),
        (&["--format", "intercom", "--ai-author", "7"][..], "--ai-author 7"),
        (&["--format", "salesforce"][..], "zendesk"),
    ] {
        let output = import_file(stack, &file, options).await?;
        exits_with(&output, 2, &[message]).with_context(|| format!("{options:?}"))?;
    }
    Ok(())
}

async fn two_at_once(stack: &Stack) -> Result<()> {
    let file = write_lines(stack, "twice.jsonl", &[conversation("at-once")])?;
    // Holds the same lock as a running import.
    let first = fs::File::open(&file)?;
    first.try_lock()?;
    exits_with(&import_file(stack, &file, &[]).await?, 1, &["another import", "twice.jsonl"])?;
    drop(first);
    exits_with_summary(&import_file(stack, &file, &[]).await?, 0, "1 accepted, 0 duplicate, 0 refused")
}

/// An import cannot be resumed with other format options.
async fn changed_format_options(stack: &Stack) -> Result<()> {
    let file = copied(stack, "zendesk.jsonl")?;
    let (lines, bytes, last_fingerprint) = (1, 1, "0");
    let saved = progress(stack, lines, bytes, last_fingerprint);
    // `reading` holds the format options.
    let saved = edited(saved, &[set("/reading", "--format zendesk --account acme")]);
    let progress_file = write_lines(stack, "zendesk.jsonl.progress.json", &[saved])?;
    let output = import_file(stack, &file, &["--format", "zendesk", "--account", "other"]).await?;
    fs::remove_file(progress_file)?;
    exits_with(&output, 1, &["--account acme"])
}

/// Ctrl-C saves the progress, and the same command resumes.
async fn interrupted(stack: &Stack) -> Result<()> {
    const MANY: usize = 1_000;
    let bodies: Vec<Value> = (0..MANY).map(|number| conversation(&format!("signal-{number}"))).collect();
    let file = write_lines(stack, "signal.jsonl", &bodies)?;
    let mut command = import_command(stack, &file, &[])?;
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id().context("it has ended")?)?);
    until_progress(&file.with_file_name("signal.jsonl.progress.json"), 100).await?;
    kill(pid, Signal::SIGINT)?;
    let output = tokio::time::timeout(WAIT_LIMIT, child.wait_with_output()).await??;
    exits_with(&output, 130, &["the same command again"])?;
    let output = import_file(stack, &file, &[]).await?;
    exits_with_summary(&output, 0, &format!("{MANY} accepted, 0 duplicate, 0 refused"))
}

fn copied(stack: &Stack, name: &str) -> Result<PathBuf> {
    let file = stack.folder().join(name);
    fs::copy(Path::new(EXAMPLES).join(name), &file)?;
    Ok(file)
}

/// An export that holds these tickets, once they are evaluated.
async fn exported(stack: &Stack, tickets: &[&str]) -> Result<Table> {
    until(&format!("tickets {tickets:?} in an export"), async || {
        let output = run_client(stack, &["export", "--kind", "axis", "--out", "-"]).await?;
        ensure!(output.status.success(), "{output:?}");
        let table = Table::read(&output.stdout)?;
        let all_there = tickets.iter().all(|ticket| table.row("external_ticket_id", ticket).is_ok());
        Ok(all_there.then_some(table))
    })
    .await
}
