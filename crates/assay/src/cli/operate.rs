//! Arguments of the operator's commands.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use url::Url;

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
pub enum ConsoleCommand {
    /// Print an address that signs in to the console once, within the hour.
    #[command(after_help = "Example:\n  assay console link --data-dir ./data")]
    Link {
        /// The organization.
        #[arg(long, default_value = "default")]
        organization: String,
        /// Address of the gateway in browsers [default: gateway.public_url, or http:// and gateway.listen].
        #[arg(long)]
        url: Option<Url>,
        #[command(flatten)]
        location: RegistryLocation,
    },
}

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Create a key and print only the key on standard output. It is shown once.
    #[command(
        after_help = "Example:\n  export ASSAY_API_KEY=$(assay keys create --organization acme --data-dir ./data)"
    )]
    Create {
        /// The organization it belongs to; created when missing.
        #[arg(long)]
        organization: String,
        /// What it is for.
        #[arg(long, default_value = "command line")]
        name: String,
        /// What it may do, separated by commas: assess, agents, tickets, exports, evaluations:read, transcripts:read, webhooks, console, admin [default: all but console and admin].
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        /// Days until it expires [default: never].
        #[arg(long)]
        expires_in_days: Option<u32>,
        #[command(flatten)]
        location: RegistryLocation,
    },
    /// List keys; the keys themselves are not stored and cannot be shown.
    List {
        /// Only those of this organization.
        #[arg(long)]
        organization: Option<String>,
        /// As a JSON array, for programs; times are epoch milliseconds.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        location: RegistryLocation,
    },
    /// Revoke a key by its id. It stops working within half a minute, or a minute while agent-registry does
    /// not answer.
    Revoke {
        /// Id of the key, as in the list.
        id: String,
        #[command(flatten)]
        location: RegistryLocation,
    },
}

#[derive(Subcommand)]
pub enum RetentionCommand {
    /// Override retention periods of an organization; the services apply them within the hour. Removed records cannot be restored.
    #[command(group = clap::ArgGroup::new("periods").required(true).multiple(true))]
    Set {
        /// The organization.
        #[arg(long)]
        organization: String,
        /// Days that transcripts and their tickets are kept: a number, `forever`, or `default` for that of the installation.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        transcripts_days: Option<String>,
        /// The same for evaluations and their rows in future exports, counted from the import.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        evaluations_days: Option<String>,
        /// The same for files of exports, counted from their completion.
        #[arg(long, value_name = "N|forever|default", group = "periods")]
        files_days: Option<String>,
        #[command(flatten)]
        location: RegistryLocation,
    },
    /// Show the periods of organizations, in days; periods in parentheses are the installation's defaults.
    Show {
        /// Only those of this organization.
        #[arg(long)]
        organization: Option<String>,
        #[command(flatten)]
        location: RegistryLocation,
    },
}

#[derive(Args)]
pub struct RegistryLocation {
    /// Data folder of a standalone [default: the database of registry.database_url].
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum DeadLetterCommand {
    /// List dead letters with age, attempts and reason. Never shows contents.
    List {
        #[command(flatten)]
        location: DeadLetterLocation,
    },
    /// Print only the content of a dead letter on standard output. It may hold personal data.
    Show {
        /// Id of the dead letter, as in the list.
        id: String,
        #[command(flatten)]
        location: DeadLetterLocation,
    },
    /// Deliver dead letters again, beginning with their first attempt.
    Retry {
        #[command(flatten)]
        selection: DeadLetterSelection,
        #[command(flatten)]
        location: DeadLetterLocation,
    },
    /// Remove dead letters for good.
    Drop {
        #[command(flatten)]
        selection: DeadLetterSelection,
        #[command(flatten)]
        location: DeadLetterLocation,
    },
}

#[derive(Args)]
pub struct DeadLetterSelection {
    /// Ids of dead letters, as in the list.
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub ids: Vec<String>,
    /// All dead letters.
    #[arg(long)]
    pub all: bool,
}

#[derive(Args)]
pub struct DeadLetterLocation {
    /// Only dead letters of this queue, or of this service's outbox [default: all queues; on the local bus all outboxes].
    #[arg(long = "queue", value_name = "NAME")]
    pub queue_or_service: Option<String>,
    #[command(flatten)]
    pub services: ServicesLocation,
}

#[derive(Subcommand)]
pub enum OutboxCommand {
    /// Show the backlog of each service: pending and dead events, age of the oldest, last error.
    Status {
        #[command(flatten)]
        location: ServicesLocation,
    },
}

#[derive(Args)]
pub struct ServicesLocation {
    /// Data folder of a standalone [default: the bus and the databases of the settings].
    #[arg(long)]
    pub data_dir: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub struct CapacityArguments {
    /// Conversations imported on an ordinary day.
    #[arg(long)]
    pub conversations_per_day: u64,
    /// Rate of the busiest hour as a multiple of the average.
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
