//! Checks the clients' answers against the API, the files and the databases.

mod files;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use assay_testkit::query_texts;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use self::files::check_file;
use self::stored::{Stored, score_locally};
use crate::client::{Answer, Client};
use crate::cluster::Cluster;
use crate::journal::{Journal, Observed};
use crate::load::{Conversations, create_export};
use crate::report::Report;

/// Time limit for the cluster to settle after healing.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);
/// Concurrent ticket reads.
const READERS: usize = 8;
/// Services that have an outbox.
const SCHEMAS: [&str; 4] = ["registry", "ingest", "scoring", "export"];
/// Deterministic members of an evaluation.
const DETERMINISTIC: [&str; 7] = ["axis", "resolution", "charge", "handoff", "sentiment", "effort", "flags"];

/// Waits until the cluster has settled, checks all invariants and fills in the report.
pub async fn check(
    cluster: &Cluster,
    client: &Client,
    journal: &Journal,
    conversations: &Conversations,
    poisoned: usize,
    report: &mut Report,
) -> Result<()> {
    let begun = Instant::now();
    settle(cluster).await?;
    report.settled_after = begun.elapsed();
    create_export(client, journal, "axis", "the-last-axis").await;
    create_export(client, journal, "resolution_audit", "the-last-audit").await;
    let observed = journal.observed();
    report.violations.extend(observed.violations.iter().cloned());
    report.wrong += observed.violations.len() as u64;
    let stored = Stored::read(cluster)?;
    let scored = score_locally(cluster).await?;
    check_identities(&observed, &stored, report);
    check_evaluations(&observed, &stored, conversations, &scored, report)?;
    check_tickets(client, &observed, report).await;
    // The two exports that were created above, when everything had settled.
    let first_final_export = observed.exports.len().saturating_sub(2);
    for (index, export) in observed.exports.iter().enumerate() {
        let is_last = index >= first_final_export;
        check_file(client, export, &stored, &observed.deleting, is_last, report).await?;
    }
    check_watermark(cluster, report)?;
    check_dead_letters(cluster, poisoned, report).await?;
    report.requests = observed.requests;
    report.accepted = observed.accepted_answers;
    report.tickets = stored.tickets.len() as u64;
    report.deleted = observed.deleted.len() as u64;
    report.exports = observed.exports.len() as u64;
    report.failures = observed.failures;
    Ok(())
}

/// Waits until every ticket has an evaluation and every event is published and handled.
async fn settle(cluster: &Cluster) -> Result<()> {
    let deadline = Instant::now() + SETTLE_LIMIT;
    loop {
        let mut waiting = 0;
        for schema in SCHEMAS {
            waiting += cluster.count(schema, "outbox WHERE dead_at IS NULL")?;
        }
        let tickets = cluster.count("ingest", "conversations")?;
        let evaluations = cluster.count("scoring", "evaluations WHERE deleted_at IS NULL")?;
        let rows = cluster.count("export", "evaluation_rows WHERE deleted_at IS NULL")?;
        if waiting == 0 && evaluations == tickets && rows == tickets {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "not settled: {waiting} events wait, {tickets} tickets, {evaluations} evaluations, {rows} rows"
        );
        sleep(Duration::from_millis(200)).await;
    }
}

/// Every identity has exactly one ticket, with the id from the answers, and was sent by a client.
fn check_identities(observed: &Observed, stored: &Stored, report: &mut Report) {
    for (external_id, ids) in &stored.tickets {
        if ids.len() > 1 {
            report.record_duplicate(format!("{external_id} is stored as {ids:?}"));
        }
        if !observed.sent.contains(external_id) {
            report.record_wrong(format!("{external_id} was never sent"));
        }
    }
    let observed_ids = observed.accepted.iter().chain(&observed.duplicates);
    let mut by_identity: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (external_id, ids) in observed_ids {
        by_identity.entry(external_id).or_default().extend(ids.iter().map(String::as_str));
    }
    for (external_id, ids) in by_identity {
        if ids.len() > 1 {
            report.record_duplicate(format!("{external_id} was answered with ids {ids:?}"));
        }
        if ids.iter().any(|id| observed.deleting.contains(*id)) {
            continue;
        }
        let stored_ids = stored.tickets.get(external_id).map(Vec::as_slice).unwrap_or_default();
        if !ids.iter().all(|id| stored_ids.iter().any(|stored_id| stored_id == id)) {
            report.record_lost(format!(
                "{external_id} was answered with ids {ids:?}, and {stored_ids:?} is stored"
            ));
        }
    }
}

/// Every ticket has one evaluation, equal to that of `assay score`.
fn check_evaluations(
    observed: &Observed,
    stored: &Stored,
    conversations: &Conversations,
    scored: &[Value],
    report: &mut Report,
) -> Result<()> {
    for (external_id, ids) in &stored.tickets {
        for id in ids {
            let Some((_, evaluation)) = stored.evaluations.get(id) else {
                report.record_lost(format!("ticket {id} ({external_id}) has no evaluation"));
                continue;
            };
            let expected = &scored[conversations.template_of(external_id)?];
            if let Some(part) = DETERMINISTIC.iter().find(|part| evaluation[**part] != expected[**part]) {
                let (found, expected) = (&evaluation[*part], &expected[*part]);
                report.record_wrong(format!("{part} of {external_id}: {found} instead of {expected}"));
            }
        }
    }
    let known = stored.ids();
    for ticket in stored.evaluations.keys().filter(|ticket| !known.contains(ticket.as_str())) {
        report.record_wrong(format!("an evaluation of {ticket}, which is no ticket"));
    }
    let is_gone =
        |ticket: &&String| !stored.evaluations.contains_key(*ticket) && !observed.deleting.contains(*ticket);
    for ticket in observed.seen_evaluated.iter().filter(is_gone) {
        report.record_lost(format!("ticket {ticket} was seen evaluated, and is not any more"));
    }
    Ok(())
}

/// Every accepted ticket can be read, with its evaluation.
async fn check_tickets(client: &Client, observed: &Observed, report: &mut Report) {
    let accepted =
        observed.accepted.iter().flat_map(|(external_id, ids)| ids.iter().map(move |id| (external_id, id)));
    let mut read = stream::iter(accepted)
        .map(|(external_id, id)| async move {
            let ticket = client.read(&format!("/v1/tickets/{id}")).await;
            let evaluation = client.read(&format!("/v1/tickets/{id}/evaluation")).await;
            (external_id, id, ticket, evaluation)
        })
        .buffer_unordered(READERS)
        .boxed();
    while let Some((external_id, id, ticket, evaluation)) = read.next().await {
        if observed.deleting.contains(id) {
            let is_gone =
                |read: &Result<Value, Answer>| matches!(read, Err(Answer::Refused { status: 404, .. }));
            if observed.deleted.contains(id) && !(is_gone(&ticket) && is_gone(&evaluation)) {
                report
                    .record_wrong(format!("{external_id} was deleted and reads {ticket:?}, {evaluation:?}"));
            }
            continue;
        }
        if !ticket.as_ref().is_ok_and(|ticket| ticket["external_id"] == **external_id) {
            report.record_lost(format!("the ticket of {external_id} reads {ticket:?}"));
        }
        if !evaluation.as_ref().is_ok_and(|evaluation| evaluation["status"] != "pending") {
            report.record_lost(format!("the evaluation of {external_id} reads {evaluation:?}"));
        }
    }
}

/// The read model's watermark equals the number of evaluations.
fn check_watermark(cluster: &Cluster, report: &mut Report) -> Result<()> {
    let read = |schema: &str, column: &str| {
        let query = format!("SELECT CAST({column} AS text) AS value FROM progress");
        query_texts(&cluster.database(schema)?, &query)
    };
    let (evaluated, watermark) = (read("scoring", "evaluated")?, read("export", "watermark")?);
    if evaluated != watermark {
        report.record_wrong(format!("{evaluated:?} evaluations were made, and {watermark:?} arrived"));
    }
    Ok(())
}

/// Exactly the poison messages are dead letters.
async fn check_dead_letters(cluster: &Cluster, poisoned: usize, report: &mut Report) -> Result<()> {
    let data = cluster.data.folder().display().to_string();
    let location: &[&str] = if cluster.backends.is_some() { &[] } else { &["--data-dir", &data] };
    let output = cluster.assay(&[&["dead-letter", "list"], location].concat()).output().await?;
    ensure!(output.status.success(), "assay dead-letter list: {output:?}");
    let list = String::from_utf8(output.stdout)?;
    let count = |line: &str| line.split_once(": ")?.1.split_once(" dead letter")?.0.parse::<u64>().ok();
    report.dead_letters = list.lines().filter_map(count).sum();
    if report.dead_letters != poisoned as u64 {
        report.record_wrong(format!(
            "{poisoned} invalid messages were published; the dead letters are:\n{list}"
        ));
    }
    Ok(())
}
