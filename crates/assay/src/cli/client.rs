//! Arguments of the commands that talk to a running service.

use std::path::PathBuf;

use clap::Args;
use url::Url;

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
