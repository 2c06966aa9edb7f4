//! What the clients were told, against the API, the files and the databases.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_testkit::query_texts;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Client};
use crate::journal::{Export, Journal, Told};
use crate::load::{Conversations, create_export};
use crate::report::Report;
use crate::run::example;
use crate::site::Site;
use crate::table::Table;

/// How long an installation may take to settle once everything is healed.
const SETTLE: Duration = Duration::from_secs(300);
/// Tickets that are read at the same time.
const READERS: usize = 8;
/// Services that have an outbox.
const SCHEMAS: [&str; 4] = ["registry", "ingest", "scoring", "export"];
/// Parts of an evaluation that say the same wherever and whenever it was made.
const TIMELESS: [&str; 7] = ["axis", "resolution", "charge", "handoff", "sentiment", "effort", "flags"];

/// What the databases hold in the end.
struct Stored {
    /// Ticket ids by external id.
    tickets: BTreeMap<String, Vec<String>>,
    /// Evaluation id and document by ticket id.
    evaluations: HashMap<String, (String, Value)>,
}

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

impl Stored {
    fn read(site: &Site) -> Result<Self> {
        let mut tickets: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let id = |column: &str| site.sql_of_id(column);
        let query = format!("SELECT external_id || '|' || {} AS value FROM conversations", id("id"));
        for row in query_texts(&site.database("ingest")?, &query)? {
            let (external_id, id) = row.split_once('|').context("no ticket")?;
            tickets.entry(external_id.to_owned()).or_default().push(hyphenated(id));
        }
        let mut evaluations = HashMap::new();
        let (ticket, evaluation) = (id("ticket_id"), id("id"));
        let query = format!(
            "SELECT {ticket} || '|' || {evaluation} || '|' || coalesce(document, 'null') AS value \
             FROM evaluations WHERE deleted_at IS NULL"
        );
        for row in query_texts(&site.database("scoring")?, &query)? {
            let mut parts = row.splitn(3, '|');
            let mut part = || parts.next().context("no evaluation");
            let (ticket, id, document) = (hyphenated(part()?), hyphenated(part()?), part()?);
            evaluations.insert(ticket, (id, serde_json::from_str(document)?));
        }
        Ok(Self { tickets, evaluations })
    }

    fn ids(&self) -> HashSet<&str> {
        self.tickets.values().flatten().map(String::as_str).collect()
    }
}

/// An id as the API writes it, of its 32 digits.
fn hyphenated(digits: &str) -> String {
    let ends = [0, 8, 12, 16, 20, 32];
    ends.windows(2).filter_map(|ends| digits.get(ends[0]..ends[1])).collect::<Vec<_>>().join("-")
}

/// What `assay score` says of each conversation that is sent.
async fn score_locally(site: &Site) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("conversations.jsonl");
    std::fs::write(&file, example("conversations.jsonl")?)?;
    let output = site.assay(&["score", &file.display().to_string()]).output().await?;
    ensure!(output.status.success(), "assay score: {output:?}");
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
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

/// An export is complete with a correct file, or failed with a reason.
async fn file(
    client: &Client,
    export: &Export,
    stored: &Stored,
    deleting: &HashSet<String>,
    is_last: bool,
    report: &mut Report,
) -> Result<()> {
    let end = finished(client, &export.id).await?;
    if end["status"] == "failed" {
        report.exports_failed += 1;
        if end["error_message"].as_str().is_none_or(str::is_empty) {
            report.be_wrong(format!("export {} failed without a reason", export.id));
        }
        if is_last {
            report.lose(format!("the last export failed: {}", end["error_message"]));
        }
        return Ok(());
    }
    let address = end["download_url"].as_str().context("complete, and no address")?;
    let bytes = match client.fetch(address).await {
        Ok(bytes) => bytes,
        Err(answer) => {
            report.lose(format!("the file of export {}: {answer:?}", export.id));
            return Ok(());
        }
    };
    match rows(&bytes, export, stored, deleting) {
        Err(error) => {
            report.be_wrong(format!("the file of export {} ({}): {error:#}", export.id, export.kind))
        }
        Ok(rows) if is_last => {
            let rows: HashSet<&str> = rows.iter().map(String::as_str).collect();
            for missing in stored.ids().difference(&rows) {
                report.lose(format!("ticket {missing} is not in the last {} export", export.kind));
            }
            for deleted in rows.difference(&stored.ids()) {
                report.be_wrong(format!(
                    "ticket {deleted} was deleted and is in the last {} export",
                    export.kind
                ));
            }
        }
        Ok(_) => {}
    }
    Ok(())
}

/// The ticket ids of a file that is what it should be.
fn rows(
    bytes: &[u8],
    export: &Export,
    stored: &Stored,
    deleting: &HashSet<String>,
) -> Result<HashSet<String>> {
    let table = Table::read(bytes)?;
    let mut rows = HashSet::new();
    let mut last = (String::new(), String::new());
    for row in &table.rows {
        let ticket = &row["ticket_id"];
        ensure!(rows.insert(ticket.clone()), "ticket {ticket} has two rows");
        let place = (row["conversation_started_at"].clone(), ticket.clone());
        ensure!(last < place, "the rows are not in order at {ticket}");
        last = place;
        if deleting.contains(ticket) {
            continue;
        }
        let of = stored.tickets.get(&row["external_ticket_id"]).context("a row of an unknown ticket")?;
        ensure!(of.contains(ticket), "the row of {ticket} names another external id");
        let (evaluation, _) = stored.evaluations.get(ticket).context("a row without an evaluation")?;
        ensure!(row["evaluation_id"] == *evaluation, "the row of {ticket} is of another evaluation");
    }
    let missing = export.must_hold.difference(&rows).filter(|ticket| !deleting.contains(*ticket));
    let missing: Vec<&String> = missing.collect();
    ensure!(
        missing.is_empty(),
        "{} of {} tickets are missing that were seen evaluated before it was created: {missing:?}",
        missing.len(),
        export.must_hold.len()
    );
    Ok(rows)
}

async fn finished(client: &Client, export: &str) -> Result<Value> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let read: Result<Value, Answer> = client.read(&format!("/v1/evaluations/exports/{export}")).await;
        if let Ok(end) = &read
            && (end["status"] == "complete" || end["status"] == "failed")
        {
            return Ok(end.clone());
        }
        ensure!(Instant::now() < deadline, "export {export} came to no end: {read:?}");
        sleep(Duration::from_millis(100)).await;
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
