//! Arguments of the commands that talk to a running service.

use std::path::PathBuf;

use assay_contracts::conversation::AiTool;
use assay_contracts::export::ExportKind;
use assay_contracts::time::Timestamp;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use url::Url;

/// Shown after the help of `assay export`.
pub const EXPORT_EXAMPLES: &str = "\
Examples:
  assay export --kind axis --from 2026-01-01 --to 2026-02-01 --out january.csv
  assay export --kind resolution_audit --out - | gzip > audit.csv.gz

Days are days in UTC. Conversations that began at --to or later are not included.";

/// Shown after the short help of `assay import`.
pub const IMPORT_EXAMPLES: &str = "\
Examples:
  assay import --agents agents.jsonl conversations.jsonl
  assay import --format zendesk --ai-agent my-bot --ai-author 360001 tickets.jsonl
  assay import --format intercom --ai-agent my-bot conversations.json

`assay import --help` describes the formats.";

/// Shown after the long help of `assay import`.
pub const IMPORT_FORMATS: &str = "\
Examples:
  assay import --agents agents.jsonl conversations.jsonl
  assay import --format zendesk --ai-agent my-bot --ai-author 360001 tickets.jsonl
  assay import --format intercom --ai-agent my-bot conversations.json

Formats, examples are in examples/:
  assay: request bodies of POST /v1/assess, one a line, sent as they are.
  zendesk: tickets with their comments, {\"ticket\": {..}, \"comments\": [..], \"users\": [..]}, from the responses of \"Show \
Ticket\" and \"List Comments\" with include=users; or tickets with a member `comments`. Comments that are not public become \
internal comments. The requester and the users' roles determine customers and teammates, --ai-author determines AI agents.
  intercom: conversations, as in the response of \"Retrieve a conversation\". Notes become internal comments, parts without a \
text become system events. Bots are the agent of --ai-agent; bots of workflows (from_ai_agent: false) are the system.

A helpdesk's conversations come one a line, in an array, or in a page ({\"tickets\": [..]}, {\"conversations\": [..]}); their \
JSON may span several lines. Messages are sorted by time, HTML becomes text, attachments become their names. A \
conversation with an unknown fact, such as an author without a role, is refused with a reason.";

#[derive(Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArguments {
    /// Address of the gateway [default: ASSAY_URL or http://127.0.0.1:8080].
    #[arg(long, value_name = "URL")]
    pub url: Option<Url>,
    /// API key [default: ASSAY_API_KEY, which other users of this machine cannot see].
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

#[derive(Args)]
pub struct ImportArguments {
    /// Conversations in the format of --format; `-` for standard input, `.gz` is unpacked.
    pub file: PathBuf,
    /// What the file holds.
    #[arg(long, value_enum, default_value_t = ImportFormat::Assay)]
    pub format: ImportFormat,
    /// AI agents to be registered first: request bodies of POST /v1/agents, one a line.
    #[arg(long, value_name = "FILE")]
    pub agents: Option<PathBuf>,
    /// Maximum number of concurrent requests.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Maximum attempts of one request while the service is busy or unreachable.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    pub attempts: u16,
    /// Wait until the conversations sent by this run are scored, so that a later export contains them.
    #[arg(long)]
    pub wait: bool,
    /// Where refused conversations are written, with reasons [default: FILE.refused.jsonl].
    #[arg(long, value_name = "FILE")]
    pub refused: Option<PathBuf>,
    /// The helpdesk's account: ticket ids are unique within it.
    #[arg(long, value_name = "ID", help_heading = "Helpdesks")]
    pub account: Option<String>,
    /// External id of the registered agent that wrote the AI messages.
    #[arg(long, value_name = "AGENT", help_heading = "Helpdesks")]
    pub ai_agent: Option<String>,
    /// Helpdesk author that is an AI agent: ID, or ID=AGENT to map it to a registered agent other than --ai-agent; repeatable.
    #[arg(long, value_name = "ID[=AGENT]", help_heading = "Helpdesks")]
    pub ai_author: Vec<String>,
    /// Tool that AI messages are labelled with.
    #[arg(long, value_name = "TOOL", help_heading = "Helpdesks", value_parser = PossibleValuesParser::new(AiTool::ALL.iter().map(|tool| tool.as_str())))]
    pub ai_tool: Option<String>,
    #[command(flatten)]
    pub service: ServiceArguments,
}

impl ImportArguments {
    /// Whether any option of a helpdesk format is given.
    pub fn has_helpdesk_options(&self) -> bool {
        self.account.is_some()
            || self.ai_agent.is_some()
            || self.ai_tool.is_some()
            || !self.ai_author.is_empty()
    }
}

/// What a file of conversations holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Request bodies of POST /v1/assess, one a line.
    Assay,
    /// Tickets with their comments and users, as Zendesk's API returns them.
    Zendesk,
    /// Conversations with their parts, as Intercom's API returns them.
    Intercom,
}

/// Without any of these arguments, `assay export` runs the role of that name.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("export").args(["kind", "id"]))]
pub struct ExportArguments {
    /// What is exported: AXIS scores, or the audit of resolutions. Without it, and without --id, the role `export` is run.
    #[arg(long, value_parser = kind_parser(), conflicts_with = "id")]
    pub kind: Option<ExportKind>,
    /// Conversations that began at this time or later: a day in UTC, or a time like 2026-01-31T09:30:00+01:00.
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, requires = "kind")]
    pub from: Option<Timestamp>,
    /// Conversations that began before this time.
    #[arg(long, value_name = "TIME", value_parser = Timestamp::parse, requires = "kind")]
    pub to: Option<Timestamp>,
    /// Fetch an export that was created before.
    #[arg(long, value_name = "EXPORT")]
    pub id: Option<String>,
    /// Where the file is written; `-` for standard output [default: assay-KIND[-FROM][-TO].csv].
    #[arg(long, value_name = "FILE", requires = "export")]
    pub out: Option<PathBuf>,
    /// Replace the file when it exists.
    #[arg(long, requires = "export")]
    pub force: bool,
    /// How long to wait until the export is complete.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, requires = "export")]
    pub timeout: u64,
    #[command(flatten)]
    pub service: ServiceArguments,
}

impl ExportArguments {
    /// Whether a file is requested; otherwise the command runs the role.
    pub fn requests_file(&self) -> bool {
        self.kind.is_some() || self.id.is_some() || self.service.url.is_some() || self.service.key.is_some()
    }
}

fn kind_parser() -> impl TypedValueParser<Value = ExportKind> {
    let names = [
        PossibleValue::new(ExportKind::Axis.as_str()),
        PossibleValue::new(ExportKind::ResolutionAudit.as_str()).alias("resolution-audit"),
    ];
    PossibleValuesParser::new(names)
        .try_map(|name| ExportKind::from_name(&name.replace('-', "_")).ok_or("there is no such kind"))
}

#[derive(Subcommand)]
pub enum TicketsCommand {
    /// Show a ticket and its evaluation: scores with reasons and quotes, the audit, warnings.
    Show {
        /// Id of the ticket, as in the receipt of its import and in exports.
        id: String,
        /// Only the evaluation.
        #[arg(long)]
        evaluation: bool,
        /// Print the responses of the API as JSON, for programs.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        service: ServiceArguments,
    },
}
