//! One file for each command that is more than a line.

mod dead_letter;
mod display;
mod evaluate;
mod fit;
mod healthcheck;
mod judge;
mod keys;
mod migrate;
mod openapi;
pub mod outbox;
mod registry_place;
mod retention;
mod score;
mod weights;

use std::process::ExitCode;

use anyhow::Result;

pub use self::migrate::migrate_all;
use crate::capacity;
use crate::cli::Command;
use crate::import;
use crate::roles::{self, Role};
use crate::standalone;

/// Done in part: some lines were refused.
pub const PARTLY: u8 = 3;

/// Runs a command; its exit code, or why it failed.
pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Standalone(arguments) => standalone::run(arguments).await?,
        Command::Gateway => roles::run(Role::Gateway).await?,
        Command::Ingest => roles::run(Role::Ingest).await?,
        Command::AgentRegistry => roles::run(Role::AgentRegistry).await?,
        Command::ScoringWorker => roles::run(Role::ScoringWorker).await?,
        Command::Export => roles::run(Role::Export).await?,
        Command::ExportWorker => roles::run(Role::ExportWorker).await?,
        Command::Webhooks => roles::run(Role::Webhooks).await?,
        Command::Migrate => migrate::run().await?,
        Command::Keys(command) => keys::run(command).await?,
        Command::Retention(command) => retention::run(command).await?,
        Command::DeadLetter(command) => dead_letter::run(command).await?,
        Command::Outbox(command) => outbox::run(command).await?,
        Command::Import(arguments) => return import::run(arguments).await,
        Command::Judge(command) => judge::run(command).await?,
        Command::Score { file, weights } => return score::run(&file, weights.as_deref()),
        Command::Evaluate { reviewed, weights } => evaluate::run(&reviewed, weights.as_deref())?,
        Command::Fit(arguments) => fit::run(arguments)?,
        Command::Capacity(arguments) => capacity::run(&arguments)?,
        Command::Healthcheck { url } => healthcheck::run(url).await?,
        Command::Openapi => openapi::run()?,
    }
    Ok(ExitCode::SUCCESS)
}
