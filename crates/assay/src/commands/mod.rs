//! One file for each command that is more than a line.

mod benchmark;
mod dead_letter;
pub mod display;
mod evaluate;
mod export;
mod fit;
mod healthcheck;
pub mod input;
mod judge;
mod keys;
mod migrate;
mod openapi;
pub mod outbox;
mod reference;
mod registry_place;
mod retention;
mod score;
mod tickets;
mod weights;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};

pub use self::migrate::migrate_all;
use crate::capacity;
use crate::cli::Command;
use crate::import;
use crate::roles::{self, Role};
use crate::standalone;

/// Done in part: some lines were refused.
pub const PARTLY: u8 = 3;

/// What was waited for did not come in time; it may still come.
pub const NOT_IN_TIME: u8 = 4;

/// Ended by a signal, in order.
pub const INTERRUPTED: u8 = 130;

/// The command line says something that cannot be meant, in a way that its parser does not notice.
#[derive(Debug)]
pub struct WrongUsage(String);

impl WrongUsage {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

/// Runs a command; its exit code, or why it failed.
pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Standalone(arguments) => standalone::run(arguments).await?,
        Command::Gateway => roles::run(Role::Gateway).await?,
        Command::Ingest => roles::run(Role::Ingest).await?,
        Command::AgentRegistry => roles::run(Role::AgentRegistry).await?,
        Command::ScoringWorker => roles::run(Role::ScoringWorker).await?,
        Command::Export(arguments) if arguments.is_for_a_file() => return export::run(arguments).await,
        Command::Export(_) => roles::run(Role::Export).await.map_err(export_role_ended)?,
        Command::ExportWorker => roles::run(Role::ExportWorker).await?,
        Command::Webhooks => roles::run(Role::Webhooks).await?,
        Command::Migrate => migrate::run().await?,
        Command::Keys(command) => keys::run(command).await?,
        Command::Retention(command) => retention::run(command).await?,
        Command::DeadLetter(command) => dead_letter::run(command).await?,
        Command::Outbox(command) => outbox::run(command).await?,
        Command::Import(arguments) => return import::run(arguments).await,
        Command::Tickets(command) => tickets::run(command).await?,
        Command::Judge(command) => judge::run(command).await?,
        Command::Score { file, weights } => return score::run(&file, weights.as_deref()),
        Command::Evaluate { reviewed, weights } => evaluate::run(&reviewed, weights.as_deref())?,
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

/// Who wanted a file shall not look for faults in the settings.
fn export_role_ended(error: Error) -> Error {
    anyhow!("{error:#} (`assay export` runs the role; `assay export --kind axis` fetches a file)")
}
