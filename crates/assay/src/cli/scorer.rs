//! Arguments of the commands that work on the scorer.

use std::path::PathBuf;

use assay_scoring_fit::Part;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum JudgeCommand {
    /// Ask the judge of the settings about a small conversation, and say in words what is wrong, or what it took.
    Test,
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

#[derive(Args)]
pub struct BenchmarkArguments {
    /// Folder of writers.tsv, conversations/ and ratings/; corpus/ of the sources is one.
    pub corpus: PathBuf,
    /// Which writers: train, dev or test.
    #[arg(long, default_value = "test", value_parser = Part::parse)]
    pub part: Part,
    /// Weights made by `assay fit` [default: the shipped ones].
    #[arg(long, conflicts_with = "reader")]
    pub weights: Option<PathBuf>,
    /// A model of the reader, measured in place of the scorer; crates/reader/model/reader.bin of the sources is one.
    #[arg(long)]
    pub reader: Option<PathBuf>,
    /// Measure the LLM judge of the settings (scoring.judge); it is asked about every conversation.
    #[arg(long, conflicts_with = "reader")]
    pub judge: bool,
    /// As JSON, for programs.
    #[arg(long)]
    pub json: bool,
}
