//! `assay export` and `assay tickets show`.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::harness::{Cases, Stack, Table, by_ai, conversation, exits_with, run_client, text};

/// 2025-11-20T00:53:20Z, the date of the conversations.
const DAY: &str = "2025-11-20";
const DAY_AFTER: &str = "2025-11-21";

/// Files, filters, tickets.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    let mut tickets = Vec::new();
    for number in 0..3 {
        tickets.push(api.import(&conversation(&format!("export-command-{number}"))).await?);
    }
    for ticket in &tickets {
        api.evaluation(ticket).await?;
    }
    let mut cases = Cases::default();
    cases.check("a file", file(stack, &tickets).await);
    cases.check("standard output", standard_output(stack).await);
    cases.check("filters", filters(stack).await);
    cases.check("a refused key", refused_key(stack).await);
    cases.check("an export of another organization", foreign(stack).await);
    cases.check("a ticket", ticket(stack, &tickets[0]).await);
    cases.check("a ticket with an AI", ticket_with_ai(stack).await);
    cases.check("tickets that are not there", unknown_ticket(stack).await);
    cases.finish()
}

async fn file(stack: &Stack, tickets: &[String]) -> Result<()> {
    for kind in ["axis", "resolution_audit"] {
        let name = format!("{kind}.csv");
        let output = run_client(stack, &["export", "--kind", kind, "--out", &name]).await?;
        exits_with(&output, 0, &["3 rows", "length and SHA-256 verified", &name])?;
        ensure!(output.stdout.is_empty(), "{output:?}");
        let table = Table::read(&fs::read(stack.folder().join(&name))?)?;
        for ticket in tickets {
            table.row("ticket_id", ticket)?;
        }
    }
    let output = run_client(stack, &["export", "--kind", "axis", "--out", "axis.csv"]).await?;
    exits_with(&output, 1, &["axis.csv exists", "--force"])?;
    let output = run_client(stack, &["export", "--kind", "axis", "--out", "axis.csv", "--force"]).await?;
    exits_with(&output, 0, &["3 rows"])?;
    let left: Vec<_> =
        fs::read_dir(stack.folder())?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    ensure!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    Ok(())
}

async fn standard_output(stack: &Stack) -> Result<()> {
    let output = run_client(stack, &["export", "--kind", "axis", "--out", "-"]).await?;
    exits_with(&output, 0, &["3 rows", "standard output"])?;
    ensure!(Table::read(&output.stdout)?.rows.len() == 3, "{output:?}");
    Ok(())
}

/// A range of time is half-open, and its days are in UTC; it is part of the default file name.
async fn filters(stack: &Stack) -> Result<()> {
    let table: [(&str, &str, &str, &str); 4] = [
        (DAY, DAY_AFTER, "3 rows", "assay-axis-2025-11-20-2025-11-21.csv"),
        (DAY_AFTER, "2026-01-01", "no conversations in this range", "assay-axis-2025-11-21-2026-01-01.csv"),
        (
            "2025-11-20T00:53:20Z",
            "2025-11-20T00:53:20.001Z",
            "3 rows",
            "assay-axis-2025-11-20T005320Z-2025-11-20T005320.001Z.csv",
        ),
        (
            DAY,
            "2025-11-20T01:53:20+01:00",
            "no conversations",
            "assay-axis-2025-11-20-2025-11-20T005320Z.csv",
        ),
    ];
    for (from, to, rows, name) in table {
        let output = run_client(stack, &["export", "--kind", "axis", "--from", from, "--to", to]).await?;
        exits_with(&output, 0, &[rows, name]).with_context(|| format!("{from} to {to}"))?;
        let exported = Table::read(&fs::read(stack.folder().join(name))?)?;
        ensure!(exported.rows.len() == if rows == "3 rows" { 3 } else { 0 }, "{from} to {to}");
    }
    Ok(())
}

async fn refused_key(stack: &Stack) -> Result<()> {
    let scoped = stack.create_key(stack.organization(), &["--scopes", "assess"]).await?;
    for (key, messages) in [
        ("no-such-key-but-long-enough-to-ask", &["401", "assay keys create"][..]),
        (&scoped, &["403", "exports", "--scopes"]),
    ] {
        let place = ["--url", stack.base_url(), "--key", key];
        let arguments = [&["export", "--kind", "axis", "--out", "refused.csv"], &place[..]].concat();
        exits_with(&stack.assay(&arguments).output().await?, 1, messages)?;
    }
    ensure!(!stack.folder().join("refused.csv").exists(), "a file for a refused key");
    let address = format!("http://127.0.0.1:{}", assay_testkit::free_port()?);
    let away = stack.assay(&["export", "--kind", "axis", "--url", &address, "--key", "k"]).output().await?;
    exits_with(&away, 1, &[&address, "is the service running"])
}

async fn foreign(stack: &Stack) -> Result<()> {
    let export = stack.api_of("others").await?.export(&json!({"kind": "axis"})).await?;
    let id = text(&export, "id")?;
    exits_with(&run_client(stack, &["export", "--id", &id, "--out", "foreign.csv"]).await?, 1, &["404"])?;
    ensure!(!stack.folder().join("foreign.csv").exists(), "a file of another organization");
    Ok(())
}

async fn ticket(stack: &Stack, id: &str) -> Result<()> {
    let output = run_client(stack, &["tickets", "show", id]).await?;
    exits_with(&output, 0, &[])?;
    let shown = String::from_utf8(output.stdout)?;
    for part in [
        id,
        "(export-command-0)",
        "Subject      Where is my refund?",
        "2 customer, 1 human",
        "AXIS         not applicable",
    ] {
        ensure!(shown.contains(part), "{part:?} is not in {shown}");
    }
    let output = run_client(stack, &["tickets", "show", id, "--evaluation"]).await?;
    ensure!(String::from_utf8(output.stdout)?.starts_with("Evaluation"), "the ticket is shown, too");
    let output = run_client(stack, &["tickets", "show", id, "--json"]).await?;
    let both: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(both["ticket"] == stack.api()?.get(&format!("/v1/tickets/{id}")).await?.expect(200)?, "{both}");
    ensure!(both["evaluation"] == stack.api()?.evaluation(id).await?, "{both}");
    let output = run_client(stack, &["tickets", "show", id, "--json", "--evaluation"]).await?;
    ensure!(serde_json::from_slice::<Value>(&output.stdout)? == both["evaluation"], "{output:?}");
    Ok(())
}

async fn ticket_with_ai(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    api.register("shown").await?;
    let id = api.import(&by_ai("shown", "shown")).await?;
    let evaluation = api.evaluation(&id).await?;
    let output = run_client(stack, &["tickets", "show", &id]).await?;
    exits_with(&output, 0, &[])?;
    let shown = String::from_utf8(output.stdout)?;
    let dimensions = &evaluation["axis"]["dimensions"];
    for part in [
        format!("AXIS         {:.1} ", evaluation["axis"]["score"].as_f64().context("score")?),
        text(&dimensions["resolution_accuracy"], "reason")?,
        text(&dimensions["interaction_effort"], "reason")?,
        text(&evaluation["resolution"], "reason")?,
        "ai_only: shown".to_owned(),
    ] {
        ensure!(shown.contains(&part), "{part:?} is not in {shown}");
    }
    Ok(())
}

async fn unknown_ticket(stack: &Stack) -> Result<()> {
    let foreign = stack.api_of("others").await?.import(&conversation("foreign")).await?;
    for id in [foreign.as_str(), "no-such-ticket", "../exports", ""] {
        exits_with(&run_client(stack, &["tickets", "show", id]).await?, 1, &["404"])
            .with_context(|| id.to_owned())?;
    }
    Ok(())
}
