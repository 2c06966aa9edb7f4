//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use url::Url;

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
    /// Run export: the read model and the export jobs.
    Export,
    /// Run export-worker: writes the files.
    ExportWorker,
    /// Run webhooks: tells endpoints of organizations what happens.
    Webhooks,
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
    /// Send conversations: request bodies of POST /v1/assess, one a line.
    Import(ImportArguments),
    /// Evaluate conversations here, without a server: one evaluation a line, in order.
    Score {
        /// Request bodies of POST /v1/assess, one a line; `-` for standard input.
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

#[derive(Args, Clone)]
pub struct CapacityArguments {
    /// Conversations imported on an ordinary day.
    #[arg(long)]
    pub conversations_per_day: u64,
    /// How many times the average the busiest hour brings.
    #[arg(long, default_value_t = 4.0)]
    pub peak_factor: f64,
    /// Mean size of a conversation as it is sent, in bytes.
    #[arg(long, default_value_t = 5_000)]
    pub body_bytes: u64,
    /// Days that transcripts are kept.
    #[arg(long, default_value_t = 365)]
    pub transcript_days: u32,
    /// Days that evaluations are kept.
    #[arg(long, default_value_t = 365)]
    pub evaluation_days: u32,
}

#[derive(Args)]
pub struct StandaloneArguments {
    /// Address to listen on [default: gateway.listen, 127.0.0.1:8080].
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Folder for databases, files and secrets; made when missing.
    #[arg(long, default_value = "./data")]
    pub data_dir: PathBuf,
}

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it, alone, on standard output. It is shown once.
    Create {
        /// The organization it belongs to; created when missing.
        #[arg(long)]
        organization: String,
        /// What it is for.
        #[arg(long, default_value = "command line")]
        name: String,
        /// What it may do, separated by commas [default: everything but admin].
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// Days until it expires [default: never].
        #[arg(long)]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        place: RegistryPlace,
    },
    /// List keys; the keys themselves are not stored and cannot be shown.
    List {
        /// Only those of this organization.
        #[arg(long)]
        organization: Option<String>,
        #[command(flatten)]
        place: RegistryPlace,
    },
    /// Revoke a key by its id. It stops working within half a minute.
    Revoke {
        /// Id of the key, as in the list.
        id: String,
        #[command(flatten)]
        place: RegistryPlace,
    },
}

#[derive(Subcommand)]
pub enum RetentionCommand {
    /// Give an organization periods of its own; the services follow within the hour. What is removed does not come back.
    #[command(group = clap::ArgGroup::new("periods").required(true).multiple(true))]
    Set {
        /// The organization.
        #[arg(long)]
        organization: String,
        /// Days that transcripts and their tickets are kept: a number, `forever`, or `default` for that of the installation.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        transcripts_days: Option<String>,
        /// The same for evaluations and their rows in exports to come, counted from the import.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        evaluations_days: Option<String>,
        /// The same for files of exports, counted from their completion.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        files_days: Option<String>,
        #[command(flatten)]
        place: RegistryPlace,
    },
    /// Show the periods of organizations, in days; those in parentheses are the installation's.
    Show {
        /// Only those of this organization.
        #[arg(long)]
        organization: Option<String>,
        #[command(flatten)]
        place: RegistryPlace,
    },
}

#[derive(Args)]
pub struct RegistryPlace {
    /// Data folder of a standalone [default: the database of registry.database_url].
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum DeadLetterCommand {
    /// List what was given up: how much, since when and why. Never shows contents.
    List {
        #[command(flatten)]
        place: DeadLetterPlace,
    },
    /// Print the content of one, alone, on standard output. It may hold personal data.
    Show {
        /// Id of the dead letter, as in the list.
        id: String,
        #[command(flatten)]
        place: DeadLetterPlace,
    },
    /// Deliver dead letters again, beginning with their first attempt.
    Retry {
        #[command(flatten)]
        chosen: ChosenDeadLetters,
        #[command(flatten)]
        place: DeadLetterPlace,
    },
    /// Remove dead letters for good.
    Drop {
        #[command(flatten)]
        chosen: ChosenDeadLetters,
        #[command(flatten)]
        place: DeadLetterPlace,
    },
}

#[derive(Args)]
pub struct ChosenDeadLetters {
    /// Ids of dead letters, as in the list.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// All that there are.
    #[arg(long)]
    pub all: bool,
}

#[derive(Args)]
pub struct DeadLetterPlace {
    /// Only those of this queue, or on the local bus of this service's outbox [default: of all].
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    #[command(flatten)]
    pub services: ServicesPlace,
}

#[derive(Subcommand)]
pub enum OutboxCommand {
    /// Show how many events wait in each service, since when and why.
    Status {
        #[command(flatten)]
        place: ServicesPlace,
    },
}

#[derive(Args)]
pub struct ServicesPlace {
    /// Data folder of a standalone [default: the bus and the databases of the settings].
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum JudgeCommand {
    /// Ask the judge of the settings about a small conversation, and say in words what is wrong, or what it took.
    Test,
}

#[derive(Args)]
pub struct ImportArguments {
    /// Request bodies, one a line; `-` for standard input.
    pub file: PathBuf,
    /// Address of the gateway [default: ASSAY_URL or http://127.0.0.1:8080].
    #[arg(long)]
    pub url: Option<Url>,
    /// API key [default: ASSAY_API_KEY].
    #[arg(long)]
    pub key: Option<String>,
    /// AI agents to be registered first: request bodies of POST /v1/agents, one a line.
    #[arg(long)]
    pub agents: Option<PathBuf>,
    /// Requests under way at most.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Attempts at one request while the service is busy or away.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    pub attempts: u16,
    /// Where refused lines are written, with reasons [default: FILE.refused.jsonl].
    #[arg(long)]
    pub refused: Option<PathBuf>,
}

#[derive(Args)]
pub struct ReviewedFiles {
    /// Request bodies of POST /v1/assess, one a line; `.gz` is unpacked.
    #[arg(long)]
    pub conversations: PathBuf,
    /// Lines {"ticket_id", "resolution_accuracy": 1-5, "interaction_effort": 1-5, "resolution": "resolved", "partial" or
    /// "not_resolved"}, every label optional; `.gz` is unpacked.
    #[arg(long)]
    pub labels: PathBuf,
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct FitArguments {
    #[command(subcommand)]
    pub command: Option<FitCommand>,
    #[command(flatten)]
    pub reviewed: Option<ReviewedFiles>,
    /// Where the weights are written; the service takes them by scoring.weights.
    #[arg(long, required = true)]
    pub out: Option<PathBuf>,
    /// Write them even when they agree less with the labels than the shipped ones.
    #[arg(long)]
    pub force: bool,
}

#[derive(Subcommand)]
pub enum FitCommand {
    /// Make the weights that ship with Assay, from public data sets; for those who work on the scorer.
    Shipped {
        /// Folder of NAME.jsonl[.gz] and NAME.labels.jsonl[.gz] for every set of crates/scoring-fit/data/shipped.json.
        #[arg(long)]
        data: PathBuf,
        /// Where the weights are written.
        #[arg(long)]
        out: PathBuf,
    },
}
