//! `assay dead-letter`: an operator's work on what consumers gave up.

mod shelf;

use std::collections::BTreeSet;
use std::io::{Write, stderr, stdout};

use anyhow::{Result, bail};
use assay_platform::runtime::now;

use self::shelf::{Chosen, Fate, Shelf, Summary};
use super::display::{age, one_line};
use crate::cli::{ChosenDeadLetters, DeadLetterCommand};

/// Dead letters of one place that are listed, so that a list never grows without bounds.
const LISTED: u32 = 1_000;

pub async fn run(command: DeadLetterCommand) -> Result<()> {
    match command {
        DeadLetterCommand::List { place } => list(&Shelf::open(&place).await?).await,
        DeadLetterCommand::Show { id, place } => show(&Shelf::open(&place).await?, &id).await,
        DeadLetterCommand::Retry { chosen, place } => {
            settle(&Shelf::open(&place).await?, chosen, Fate::Retry).await
        }
        DeadLetterCommand::Drop { chosen, place } => {
            settle(&Shelf::open(&place).await?, chosen, Fate::Drop).await
        }
    }
}

async fn list(shelves: &[Shelf]) -> Result<()> {
    let mut output = stdout();
    for shelf in shelves {
        let (total, summaries) = shelf.list(LISTED).await?;
        let letters = if total == 1 { "dead letter" } else { "dead letters" };
        writeln!(output, "{}: {total} {letters}", one_line(shelf.name()))?;
        for summary in &summaries {
            writeln!(output, "  {}", describe(summary))?;
        }
        if total > u64::from(LISTED) {
            writeln!(stderr(), "only the oldest {LISTED} of {} are listed", one_line(shelf.name()))?;
        }
    }
    Ok(())
}

async fn show(shelves: &[Shelf], id: &str) -> Result<()> {
    for shelf in shelves {
        if let Some((summary, content)) = shelf.find(id).await? {
            writeln!(stderr(), "{}: {}", one_line(shelf.name()), describe(&summary))?;
            let mut output = stdout();
            output.write_all(&content)?;
            writeln!(output)?;
            return Ok(());
        }
    }
    bail!("there is no dead letter with the id {id}; `assay dead-letter list` shows the ids")
}

async fn settle(shelves: &[Shelf], chosen: ChosenDeadLetters, fate: Fate) -> Result<()> {
    let chosen = if chosen.all { Chosen::All } else { Chosen::Ids(chosen.ids.into_iter().collect()) };
    let done = match fate {
        Fate::Retry => "to be delivered again",
        Fate::Drop => "removed",
    };
    let mut settled = BTreeSet::new();
    for shelf in shelves {
        let ids = shelf.settle(&chosen, fate).await?;
        if !ids.is_empty() {
            writeln!(stderr(), "{}: {} {done}", one_line(shelf.name()), ids.len())?;
        }
        settled.extend(ids);
    }
    if let Chosen::Ids(ids) = &chosen {
        let missing: Vec<&str> = ids.difference(&settled).map(String::as_str).collect();
        if !missing.is_empty() {
            bail!("no dead letter has the id {}; `assay dead-letter list` shows the ids", missing.join(", "));
        }
    } else if settled.is_empty() {
        writeln!(stderr(), "there are no dead letters")?;
    }
    Ok(())
}

fn describe(summary: &Summary) -> String {
    let topic = summary.topic.as_deref().unwrap_or("unknown topic");
    let since = summary.given_up_at.map_or_else(
        || "given up at an unknown time".to_owned(),
        |moment| format!("given up {} ago", age(moment, now())),
    );
    let (id, reason) = (one_line(&summary.id), one_line(&summary.reason));
    format!("{id}  {}  {since}  attempts: {}  {reason}", one_line(topic), summary.attempts)
}
