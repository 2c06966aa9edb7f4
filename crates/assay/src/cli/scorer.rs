//! Arguments of the commands that work on the scorer.

use std::path::PathBuf;

use assay_scoring_fit::CorpusPart;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum JudgeCommand {
    /// Send a small conversation to the configured judge; print the problem, or latency, tokens and cost.
    Test,
}

#[derive(Args)]
pub struct ReviewedFiles {
    /// Request bodies of POST /v1/assess, one a line; `.gz` is unpacked.
    #[arg(long)]
    pub conversations: PathBuf,
    /// Lines {"ticket_id", "resolution_accuracy": 1-5, "interaction_effort": 1-5, "handoff_smoothness": 1-5,
    /// "resolution": "resolved", "partial" or "not_resolved"}, every label optional; `.gz` is unpacked.
    #[arg(long)]
    pub labels: PathBuf,
}

#[derive(Args)]
pub struct FitArguments {
    #[command(flatten)]
    pub reviewed: ReviewedFiles,
    /// File for the weights; the setting scoring.weights makes the service use it.
    #[arg(long)]
    pub out: PathBuf,
    /// Write the weights even when they agree no better with the labels than the shipped ones.
    #[arg(long)]
    pub force: bool,
}

#[derive(Args)]
pub struct BenchmarkArguments {
    /// Folder with writers.tsv, conversations/ and ratings/, such as corpus/ of the sources.
    pub corpus: PathBuf,
    /// Which writers: train, dev or test.
    #[arg(long, default_value = "test", value_parser = CorpusPart::parse)]
    pub part: CorpusPart,
    /// Weights made by `assay fit` [default: the shipped ones].
    #[arg(long)]
    pub weights: Option<PathBuf>,
    /// A reader's model [default: the shipped one].
    #[arg(long)]
    pub model: Option<PathBuf>,
    /// Measure the LLM judge of the settings (scoring.judge); it is asked about every conversation.
    #[arg(long)]
    pub judge: bool,
    /// As JSON, for programs.
    #[arg(long)]
    pub json: bool,
}
