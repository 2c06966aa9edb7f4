//! What the clients were told, against the API, the files and the databases.

mod files;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_testkit::query_texts;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use self::files::file;
use self::stored::{Stored, score_locally};
use crate::client::{Answer, Client};
use crate::journal::{Journal, Told};
use crate::load::{Conversations, create_export};
use crate::report::Report;
use crate::site::Site;

/// How long an installation may take to settle once everything is healed.
const SETTLE: Duration = Duration::from_secs(300);
/// Tickets that are read at the same time.
const READERS: usize = 8;
/// Services that have an outbox.
const SCHEMAS: [&str; 4] = ["registry", "ingest", "scoring", "export"];
/// Parts of an evaluation that say the same wherever and whenever it was made.
const TIMELESS: [&str; 7] = ["axis", "resolution", "charge", "handoff", "sentiment", "effort", "flags"];

/// Waits until the installation has settled, and writes into the report what was kept and what was broken.
pub async fn reach(
    site: &Site,
    client: &Client,
    journal: &Journal,
    conversations: &Conversations,
    poisoned: usize,
    report: &mut Report,
) -> Result<()> {
    let begun = Instant::now();
    settle(site).await?;
    report.settled_after = begun.elapsed();
    create_export(client, journal, "axis", "the-last-axis").await;
    create_export(client, journal, "resolution_audit", "the-last-audit").await;
    let told = journal.told();
    report.violations.extend(told.violations.iter().cloned());
    report.wrong += told.violations.len() as u64;
    let stored = Stored::read(site)?;
    let scored = score_locally(site).await?;
    identities(&told, &stored, report);
    evaluations(&told, &stored, conversations, &scored, report)?;
    tickets(client, &told, report).await;
    let last = told.exports.len().saturating_sub(2);
    for (index, export) in told.exports.iter().enumerate() {
        file(client, export, &stored, &told.deleting, index >= last, report).await?;
    }
    counters(site, report)?;
    dead_letters(site, poisoned, report).await?;
    report.requests = told.requests;
    report.accepted = told.accepted_answers;
    report.tickets = stored.tickets.len() as u64;
    report.deleted = told.deleted.len() as u64;
    report.exports = told.exports.len() as u64;
    report.failures = told.failures;
    Ok(())
}

/// Every ticket has an evaluation, and every event has left its outbox and was handled.
async fn settle(site: &Site) -> Result<()> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let count = |schema: &str, query: &str| -> Result<u64> {
            let query = format!("SELECT CAST(count(*) AS text) AS value FROM {query}");
            Ok(query_texts(&site.database(schema)?, &query)?.first().context("no count")?.parse()?)
        };
        let mut waiting = 0;
        for schema in SCHEMAS {
            waiting += count(schema, "outbox WHERE dead_at IS NULL")?;
        }
        let tickets = count("ingest", "conversations")?;
        let evaluations = count("scoring", "evaluations WHERE deleted_at IS NULL")?;
        let rows = count("export", "evaluation_rows WHERE deleted_at IS NULL")?;
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

/// One ticket for each identity, the one that was told; none that nobody sent.
fn identities(told: &Told, stored: &Stored, report: &mut Report) {
    for (external_id, ids) in &stored.tickets {
        if ids.len() > 1 {
            report.duplicate(format!("{external_id} is stored as {ids:?}"));
        }
        if !told.sent.contains(external_id) {
            report.be_wrong(format!("{external_id} was never sent"));
        }
    }
    let told_ids = told.accepted.iter().chain(&told.duplicates);
    let mut by_identity: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (external_id, ids) in told_ids {
        by_identity.entry(external_id).or_default().extend(ids.iter().map(String::as_str));
    }
    for (external_id, ids) in by_identity {
        if ids.len() > 1 {
            report.duplicate(format!("{external_id} was told to be {ids:?}"));
        }
        if ids.iter().any(|id| told.deleting.contains(*id)) {
            continue;
        }
        let kept = stored.tickets.get(external_id).map(Vec::as_slice).unwrap_or_default();
        if !ids.iter().all(|id| kept.iter().any(|kept| kept == id)) {
            report.lose(format!("{external_id} was told to be {ids:?}, and {kept:?} is stored"));
        }
    }
}

/// One evaluation for each ticket, and it says what the scorer says.
fn evaluations(
    told: &Told,
    stored: &Stored,
    conversations: &Conversations,
    scored: &[Value],
    report: &mut Report,
) -> Result<()> {
    for (external_id, ids) in &stored.tickets {
        for id in ids {
            let Some((_, evaluation)) = stored.evaluations.get(id) else {
                report.lose(format!("ticket {id} ({external_id}) has no evaluation"));
                continue;
            };
            let expected = &scored[conversations.template_of(external_id)?];
            if let Some(part) = TIMELESS.iter().find(|part| evaluation[**part] != expected[**part]) {
                let (found, expected) = (&evaluation[*part], &expected[*part]);
                report.be_wrong(format!("{part} of {external_id}: {found} instead of {expected}"));
            }
        }
    }
    let known = stored.ids();
    for ticket in stored.evaluations.keys().filter(|ticket| !known.contains(ticket.as_str())) {
        report.be_wrong(format!("an evaluation of {ticket}, which is no ticket"));
    }
    let is_gone =
        |ticket: &&String| !stored.evaluations.contains_key(*ticket) && !told.deleting.contains(*ticket);
    for ticket in told.seen_evaluated.iter().filter(is_gone) {
        report.lose(format!("ticket {ticket} was seen evaluated, and is not any more"));
    }
    Ok(())
}

/// Every accepted ticket can be read, with its evaluation.
async fn tickets(client: &Client, told: &Told, report: &mut Report) {
    let accepted =
        told.accepted.iter().flat_map(|(external_id, ids)| ids.iter().map(move |id| (external_id, id)));
    let mut read = stream::iter(accepted)
        .map(|(external_id, id)| async move {
            let ticket = client.read(&format!("/v1/tickets/{id}")).await;
            let evaluation = client.read(&format!("/v1/tickets/{id}/evaluation")).await;
            (external_id, id, ticket, evaluation)
        })
        .buffer_unordered(READERS)
        .boxed();
    while let Some((external_id, id, ticket, evaluation)) = read.next().await {
        if told.deleting.contains(id) {
            let is_gone =
                |read: &Result<Value, Answer>| matches!(read, Err(Answer::Refused { status: 404, .. }));
            if told.deleted.contains(id) && !(is_gone(&ticket) && is_gone(&evaluation)) {
                report.be_wrong(format!("{external_id} was deleted and reads {ticket:?}, {evaluation:?}"));
            }
            continue;
        }
        if !ticket.as_ref().is_ok_and(|ticket| ticket["external_id"] == **external_id) {
            report.lose(format!("the ticket of {external_id} reads {ticket:?}"));
        }
        if !evaluation.as_ref().is_ok_and(|evaluation| evaluation["status"] != "pending") {
            report.lose(format!("the evaluation of {external_id} reads {evaluation:?}"));
        }
    }
}

/// The read model has every evaluation that was ever made, by its number.
fn counters(site: &Site, report: &mut Report) -> Result<()> {
    let read = |schema: &str, column: &str| {
        let query = format!("SELECT CAST({column} AS text) AS value FROM progress");
        query_texts(&site.database(schema)?, &query)
    };
    let (evaluated, taken_in) = (read("scoring", "evaluated")?, read("export", "taken_in")?);
    if evaluated != taken_in {
        report.be_wrong(format!("{evaluated:?} evaluations were made, and {taken_in:?} arrived"));
    }
    Ok(())
}

/// What was poisoned is there for the operator, and nothing else.
async fn dead_letters(site: &Site, poisoned: usize, report: &mut Report) -> Result<()> {
    let data = site.data.folder().display().to_string();
    let place: &[&str] = if site.backends.is_some() { &[] } else { &["--data-dir", &data] };
    let output = site.assay(&[&["dead-letter", "list"], place].concat()).output().await?;
    ensure!(output.status.success(), "assay dead-letter list: {output:?}");
    let list = String::from_utf8(output.stdout)?;
    let count = |line: &str| line.split_once(": ")?.1.split_once(" dead letter")?.0.parse::<u64>().ok();
    report.dead_letters = list.lines().filter_map(count).sum();
    if report.dead_letters != poisoned as u64 {
        report.be_wrong(format!("{poisoned} messages were poisoned, and these are dead letters:\n{list}"));
    }
    Ok(())
}
