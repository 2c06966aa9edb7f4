//! The command line.

mod client;
mod help;
mod operate;
mod scorer;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use url::Url;

pub use self::client::*;
pub use self::help::command;
pub use self::operate::*;
pub use self::scorer::*;

/// Score customer-support conversations and audit what AI agents really resolved.
#[derive(Parser)]
#[command(name = "assay", version, about, max_term_width = 100)]
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
    /// Fetch a file of evaluations: create an export, wait, download, verify.
    ///
    /// The file appears under its name only after its length and SHA-256 match those that the service reported. A broken
    /// connection is resumed. Without options, this runs the role export: the read model and the export jobs.
    #[command(name = "export", after_help = EXPORT_EXAMPLES)]
    FetchExportOrRunRole(ExportArguments),
    /// Run export-worker: writes the files.
    ExportWorker,
    /// Run webhooks: notifies endpoints of organizations.
    Webhooks,
    /// Create a sign-in link for the console (`assay console link`). Without a subcommand: run console, the web pages.
    Console {
        /// `None` runs the role.
        #[command(subcommand)]
        command: Option<ConsoleCommand>,
    },
    /// Bring the databases of all services up to date.
    Migrate,
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Set and show how long organizations keep transcripts, evaluations and files of exports.
    #[command(subcommand)]
    Retention(RetentionCommand),
    /// List dead letters; deliver them again or remove them.
    #[command(subcommand)]
    DeadLetter(DeadLetterCommand),
    /// Show events that services have not yet published.
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Send conversations: request bodies of POST /v1/assess, or conversations of a helpdesk.
    ///
    /// It can be interrupted: FILE.progress.json stores the progress, and the same command resumes there. A conversation
    /// with more than 50 messages is sent with its first 10 and its last 40, and standard error and the summary say so. The
    /// progress bar appears at a terminal only.
    #[command(after_help = IMPORT_EXAMPLES, after_long_help = IMPORT_FORMATS)]
    Import(ImportArguments),
    /// Look at tickets and their evaluations.
    #[command(subcommand)]
    Tickets(TicketsCommand),
    /// Evaluate conversations locally, without a server: one evaluation a line, in order.
    #[command(
        after_help = "Faulty lines are reported on standard error and skipped; the exit code is then 3."
    )]
    Score {
        /// Request bodies of POST /v1/assess, one a line; `-` for standard input, `.gz` is unpacked.
        file: PathBuf,
        /// Weights made by `assay fit` [default: the shipped ones].
        #[arg(long)]
        weights: Option<PathBuf>,
    },
    /// Check the LLM judge, if one is configured.
    #[command(subcommand)]
    Judge(JudgeCommand),
    /// Measure how well a scorer agrees with your reviewers' labels.
    #[command(name = "evaluate")]
    CompareWithLabels {
        #[command(flatten)]
        reviewed: ReviewedFiles,
        /// Weights made by `assay fit` [default: the shipped ones].
        #[arg(long)]
        weights: Option<PathBuf>,
    },
    /// Adapt the scorer's weights to your reviewers: from 25 labelled conversations on.
    Fit(FitArguments),
    /// Show what a weights file made by `assay fit` holds.
    Weights {
        /// The file.
        file: PathBuf,
    },
    /// Measure how well the scorer agrees with the raters of a corpus: for developers of the scorer.
    Benchmark(BenchmarkArguments),
    /// Estimate what an installation needs: processors, storage, brokers.
    Capacity(CapacityArguments),
    /// Exit with 0 when an address answers with a 2xx status: for container health checks.
    Healthcheck {
        /// The address.
        #[arg(long, default_value = "http://127.0.0.1:8080/readyz")]
        url: Url,
    },
    /// Print completions for a shell.
    #[command(
        after_help = "Where they go: bash: ~/.local/share/bash-completion/completions/assay; zsh: a file _assay in a folder of\n\
                            $fpath; fish: ~/.config/fish/completions/assay.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the OpenAPI document of the public API.
    Openapi,
    /// Print the help of all commands as one document.
    Reference,
}
