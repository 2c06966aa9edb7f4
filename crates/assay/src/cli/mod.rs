//! The command line.

mod client;
mod operate;
mod scorer;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use url::Url;

pub use self::client::*;
pub use self::operate::*;
pub use self::scorer::*;

/// Score customer-support conversations and audit what AI agents really resolved.
#[derive(Parser)]
#[command(name = "assay", version, about, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, or stopped in order by a signal; 1 failed; 2 wrong usage; 3 done in part (some lines\n\
                        were refused); 130 ended at once by a second signal.\n\
                        Settings: config/default.toml, the file named by ASSAY_CONFIG, and ASSAY_SECTION__KEY variables."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run everything in one process, on SQLite: needs nothing installed.
    Standalone(StandaloneArguments),
    /// Run the gateway: the public API.
    Gateway,
    /// Run ingest: stores conversations.
    Ingest,
    /// Run agent-registry: organizations, API keys, AI agents.
    AgentRegistry,
    /// Run scoring-worker: evaluates conversations.
    ScoringWorker,
    /// Fetch a file of evaluations: create an export, wait, download, verify. Without options: run the role export.
    Export(ExportArguments),
    /// Run export-worker: writes the files.
    ExportWorker,
    /// Bring the databases of all services up to date.
    Migrate,
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Set and show how long organizations keep transcripts, evaluations and files of exports.
    #[command(subcommand)]
    Retention(RetentionCommand),
    /// Look at what consumers gave up; deliver it again or remove it.
    #[command(subcommand)]
    DeadLetter(DeadLetterCommand),
    /// Look at what services have not yet handed to the bus.
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Send conversations: request bodies of POST /v1/assess, one a line, or what a helpdesk exports.
    Import(ImportArguments),
    /// Look at tickets.
    #[command(subcommand)]
    Tickets(TicketsCommand),
    /// Evaluate conversations here, without a server: one evaluation a line, in order.
    Score {
        /// Request bodies of POST /v1/assess, one a line; `-` for standard input, `.gz` is unpacked.
        file: PathBuf,
        /// Weights made by `assay fit` [default: the shipped ones].
        #[arg(long)]
        weights: Option<PathBuf>,
    },
    /// Look at the LLM judge, where one is set.
    #[command(subcommand)]
    Judge(JudgeCommand),
    /// Measure how well a scorer agrees with your reviewers' labels.
    Evaluate {
        #[command(flatten)]
        reviewed: ReviewedFiles,
        /// Weights made by `assay fit` [default: the shipped ones].
        #[arg(long)]
        weights: Option<PathBuf>,
    },
    /// Adapt the scorer's weights to your reviewers: from 25 labelled conversations on.
    Fit(FitArguments),
    /// Reckon what an installation needs: processors, storage, brokers.
    Capacity(CapacityArguments),
    /// Exit with 0 when an address answers 200: for container health checks.
    Healthcheck {
        /// The address.
        #[arg(long, default_value = "http://127.0.0.1:8080/readyz")]
        url: Url,
    },
    /// Print the OpenAPI document of the public API.
    Openapi,
}
