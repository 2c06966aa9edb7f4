//! Checks the files of exports.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::SETTLE_LIMIT;
use super::stored::Stored;
use crate::client::{Answer, Client};
use crate::journal::Export;
use crate::report::Report;
use crate::table::Table;

/// Checks that an export is complete with a correct file, or failed with a reason. The last exports, which are created when
/// everything has settled, must not fail and must hold exactly the stored tickets.
pub async fn check_file(
    client: &Client,
    export: &Export,
    stored: &Stored,
    deleting: &HashSet<String>,
    is_last: bool,
    report: &mut Report,
) -> Result<()> {
    let finished = await_finished(client, &export.id).await?;
    if finished["status"] == "failed" {
        report.exports_failed += 1;
        if finished["error_message"].as_str().is_none_or(str::is_empty) {
            report.record_wrong(format!("export {} failed without a reason", export.id));
        }
        if is_last {
            report.record_lost(format!("the last export failed: {}", finished["error_message"]));
        }
        return Ok(());
    }
    let address = finished["download_url"].as_str().context("complete, without an address")?;
    let bytes = match client.fetch(address).await {
        Ok(bytes) => bytes,
        Err(answer) => {
            report.record_lost(format!("the file of export {}: {answer:?}", export.id));
            return Ok(());
        }
    };
    match check_rows(&bytes, export, stored, deleting) {
        Err(error) => {
            report.record_wrong(format!("the file of export {} ({}): {error:#}", export.id, export.kind))
        }
        Ok(ticket_ids) if is_last => {
            let exported: HashSet<&str> = ticket_ids.iter().map(String::as_str).collect();
            for missing in stored.ids().difference(&exported) {
                report.record_lost(format!("ticket {missing} is not in the last {} export", export.kind));
            }
            for deleted in exported.difference(&stored.ids()) {
                report.record_wrong(format!(
                    "ticket {deleted} was deleted and is in the last {} export",
                    export.kind
                ));
            }
        }
        Ok(_) => {}
    }
    Ok(())
}

/// Checks the rows of a file and returns their ticket ids.
fn check_rows(
    bytes: &[u8],
    export: &Export,
    stored: &Stored,
    deleting: &HashSet<String>,
) -> Result<HashSet<String>> {
    let table = Table::read(bytes)?;
    let mut ticket_ids = HashSet::new();
    let mut previous_sort_key = (String::new(), String::new());
    for row in &table.rows {
        let ticket = &row["ticket_id"];
        ensure!(ticket_ids.insert(ticket.clone()), "ticket {ticket} has two rows");
        let sort_key = (row["conversation_started_at"].clone(), ticket.clone());
        ensure!(previous_sort_key < sort_key, "the rows are not in order at {ticket}");
        previous_sort_key = sort_key;
        // Its deletion was requested: the databases may not have it any more.
        if deleting.contains(ticket) {
            continue;
        }
        let ids = stored.tickets.get(&row["external_ticket_id"]).context("a row of an unknown ticket")?;
        ensure!(ids.contains(ticket), "the row of {ticket} names another external id");
        let (evaluation, _) = stored.evaluations.get(ticket).context("a row without an evaluation")?;
        ensure!(row["evaluation_id"] == *evaluation, "the row of {ticket} is of another evaluation");
    }
    let missing = export.must_hold.difference(&ticket_ids).filter(|ticket| !deleting.contains(*ticket));
    let missing: Vec<&String> = missing.collect();
    ensure!(
        missing.is_empty(),
        "{} of {} tickets are missing that were seen evaluated before it was created: {missing:?}",
        missing.len(),
        export.must_hold.len()
    );
    Ok(ticket_ids)
}

async fn await_finished(client: &Client, export: &str) -> Result<Value> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        let read: Result<Value, Answer> = client.read(&format!("/v1/evaluations/exports/{export}")).await;
        if let Ok(end) = &read
            && (end["status"] == "complete" || end["status"] == "failed")
        {
            return Ok(end.clone());
        }
        ensure!(Instant::now() < deadline, "export {export} did not finish: {read:?}");
        sleep(Duration::from_millis(100)).await;
    }
}
