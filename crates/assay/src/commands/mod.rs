//! The commands, most of them in a file of their own; larger ones are modules of the crate.

mod benchmark;
mod console;
mod dead_letter;
mod evaluate;
mod export;
mod fit;
mod healthcheck;
mod judge;
mod keys;
mod migrate;
mod openapi;
mod outbox;
mod reference;
mod registry_database;
mod retention;
mod score;
mod tickets;
mod weights;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};

use crate::capacity;
use crate::cli::Command;
use crate::import;
use crate::roles::{self, Role};
use crate::standalone;

pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Standalone(arguments) => standalone::run(arguments).await?,
        Command::Gateway => roles::run(Role::Gateway).await?,
        Command::Ingest => roles::run(Role::Ingest).await?,
        Command::AgentRegistry => roles::run(Role::AgentRegistry).await?,
        Command::ScoringWorker => roles::run(Role::ScoringWorker).await?,
        Command::FetchExportOrRunRole(arguments) if arguments.requests_file() => {
            return export::run(arguments).await;
        }
        Command::FetchExportOrRunRole(_) => roles::run(Role::Export).await.map_err(with_file_hint)?,
        Command::ExportWorker => roles::run(Role::ExportWorker).await?,
        Command::Webhooks => roles::run(Role::Webhooks).await?,
        Command::Console { command: None } => roles::run(Role::Console).await?,
        Command::Console { command: Some(command) } => console::run(command).await?,
        Command::Migrate => migrate::run().await?,
        Command::Keys(command) => keys::run(command).await?,
        Command::Retention(command) => retention::run(command).await?,
        Command::DeadLetter(command) => dead_letter::run(command).await?,
        Command::Outbox(command) => outbox::run(command).await?,
        Command::Import(arguments) => return import::run(arguments).await,
        Command::Tickets(command) => tickets::run(command).await?,
        Command::Judge(command) => judge::run(command).await?,
        Command::Score { file, weights } => return score::run(&file, weights.as_deref()),
        Command::CompareWithLabels { reviewed, weights } => evaluate::run(&reviewed, weights.as_deref())?,
        Command::Fit(arguments) => fit::run(&arguments)?,
        Command::Weights { file } => weights::run(&file)?,
        Command::Benchmark(arguments) => benchmark::run(arguments).await?,
        Command::Capacity(arguments) => capacity::run(&arguments)?,
        Command::Healthcheck { url } => healthcheck::run(url).await?,
        Command::Completions { shell } => reference::completions(shell)?,
        Command::Openapi => openapi::run()?,
        Command::Reference => reference::markdown()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a hint: the user may have wanted a file and forgotten the options.
fn with_file_hint(error: Error) -> Error {
    anyhow!("{error:#} (`assay export` runs the role; `assay export --kind axis` fetches a file)")
}
