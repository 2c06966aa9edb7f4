//! `assay outbox`: shows the backlog: events that are committed and not yet published.

use std::io::{Write, stdout};

use anyhow::{Result, bail};
use assay_platform::runtime::now;

use crate::cli::OutboxCommand;
use crate::installation::{load_settings, open_outbox, outbox_databases};
use crate::settings::Settings;
use crate::terminal::{age, one_line};

pub async fn run(command: OutboxCommand) -> Result<()> {
    match command {
        OutboxCommand::Status { location } => status(&load_settings(&location)?).await,
    }
}

/// One line per service. A database that cannot be reached does not hide the others.
async fn status(settings: &Settings) -> Result<()> {
    let mut output = stdout();
    writeln!(output, "{:10}  {:>8}  {:>8}  {:>8}  LAST ERROR", "SERVICE", "PENDING", "OLDEST", "DEAD")?;
    let mut unreachable = Vec::new();
    for (service, database) in outbox_databases(settings) {
        let status = async { Ok::<_, anyhow::Error>(open_outbox(service, &database).await?.status().await?) };
        match status.await {
            Ok(status) => {
                let oldest =
                    status.oldest_pending.map_or_else(|| "-".to_owned(), |moment| age(moment, now()));
                let last_error = status.last_error.as_deref().map_or_else(|| "-".to_owned(), one_line);
                let (pending, dead) = (status.pending, status.dead);
                writeln!(output, "{service:10}  {pending:>8}  {oldest:>8}  {dead:>8}  {last_error}")?;
            }
            Err(error) => {
                let (unknown, reason) = ("?", one_line(&format!("{error:#}")));
                writeln!(output, "{service:10}  {unknown:>8}  {unknown:>8}  {unknown:>8}  {reason}")?;
                unreachable.push(service);
            }
        }
    }
    if unreachable.is_empty() {
        return Ok(());
    }
    let unreachable = unreachable.join(", ");
    bail!("the outbox of {unreachable} cannot be seen from here: run this where all databases can be reached")
}
