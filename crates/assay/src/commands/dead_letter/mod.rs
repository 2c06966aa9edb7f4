//! `assay dead-letter`: lists, shows, retries and drops events that consumers gave up. A source of dead letters is a dead-letter queue
//! of RabbitMQ or the outbox of a service.

mod source;

use std::collections::BTreeSet;
use std::io::{Write, stderr, stdout};

use anyhow::{Result, bail};
use assay_platform::runtime::now;

use self::source::{DeadLetterAction, DeadLetterSource, DeadLetterSummary, Selection};
use crate::cli::{DeadLetterCommand, DeadLetterLocation, DeadLetterSelection};
use crate::terminal::{age, one_line};

/// Maximum number of dead letters that are listed of each source.
const MAX_LISTED: u32 = 1_000;

pub async fn run(command: DeadLetterCommand) -> Result<()> {
    match command {
        DeadLetterCommand::List { location } => list(&location).await,
        DeadLetterCommand::Show { id, location } => show(&location, &id).await,
        DeadLetterCommand::Retry { selection, location } => {
            apply(&location, selection, DeadLetterAction::Retry).await
        }
        DeadLetterCommand::Drop { selection, location } => {
            apply(&location, selection, DeadLetterAction::Drop).await
        }
    }
}

async fn list(location: &DeadLetterLocation) -> Result<()> {
    let mut output = stdout();
    for source in DeadLetterSource::open_selected(location).await? {
        let (total, summaries) = source.list(MAX_LISTED).await?;
        let letters = if total == 1 { "dead letter" } else { "dead letters" };
        writeln!(output, "{}: {total} {letters}", one_line(source.name()))?;
        for summary in &summaries {
            writeln!(output, "  {}", describe(summary))?;
        }
        if total > u64::from(MAX_LISTED) {
            writeln!(stderr(), "only the oldest {MAX_LISTED} of {} are listed", one_line(source.name()))?;
        }
    }
    Ok(())
}

async fn show(location: &DeadLetterLocation, id: &str) -> Result<()> {
    for source in DeadLetterSource::open_selected(location).await? {
        if let Some((summary, content)) = source.find(id).await? {
            writeln!(stderr(), "{}: {}", one_line(source.name()), describe(&summary))?;
            let mut output = stdout();
            output.write_all(&content)?;
            writeln!(output)?;
            return Ok(());
        }
    }
    bail!("there is no dead letter with the id {id}; `assay dead-letter list` shows the ids")
}

async fn apply(
    location: &DeadLetterLocation,
    selection: DeadLetterSelection,
    action: DeadLetterAction,
) -> Result<()> {
    let selection =
        if selection.all { Selection::All } else { Selection::Ids(selection.ids.into_iter().collect()) };
    let done = match action {
        DeadLetterAction::Retry => "to be delivered again",
        DeadLetterAction::Drop => "removed",
    };
    let mut affected = BTreeSet::new();
    for source in DeadLetterSource::open_selected(location).await? {
        let ids = source.apply(&selection, action).await?;
        if !ids.is_empty() {
            writeln!(stderr(), "{}: {} {done}", one_line(source.name()), ids.len())?;
        }
        affected.extend(ids);
    }
    if let Selection::Ids(ids) = &selection {
        let missing: Vec<&str> = ids.difference(&affected).map(String::as_str).collect();
        if !missing.is_empty() {
            bail!("no dead letter has the id {}; `assay dead-letter list` shows the ids", missing.join(", "));
        }
    } else if affected.is_empty() {
        writeln!(stderr(), "there are no dead letters")?;
    }
    Ok(())
}

fn describe(summary: &DeadLetterSummary) -> String {
    let topic = summary.topic.as_deref().unwrap_or("unknown topic");
    let since = summary.given_up_at.map_or_else(
        || "given up at an unknown time".to_owned(),
        |moment| format!("given up {} ago", age(moment, now())),
    );
    let (id, reason) = (one_line(&summary.id), one_line(&summary.reason));
    format!("{id}  {}  {since}  attempts: {}  {reason}", one_line(topic), summary.attempts)
}
