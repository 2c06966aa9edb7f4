//! `assay fit`: weights for a user's own reviewers, and the weights that ship with Assay.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use assay_scoring::FeatureReader;
use assay_scoring_fit::{Fitted, Reviewed, WorseWeights, fit_local, fit_shipped};

use crate::cli::{FitArguments, FitCommand};

/// Writes a weights file and prints the figures on standard output.
pub fn run(arguments: FitArguments) -> Result<()> {
    if let Some(FitCommand::Shipped { data, out }) = arguments.command {
        return write(&fit_shipped(&data)?, &out);
    }
    let files = arguments.reviewed.context("name --conversations and --labels")?;
    let out = arguments.out.context("name --out")?;
    let reviewed = Reviewed::read(&FeatureReader::builtin()?, &files.conversations, &files.labels)?;
    let worse = if arguments.force { WorseWeights::Accept } else { WorseWeights::Refuse };
    write(&fit_local(&reviewed, worse)?, &out)
}

fn write(fitted: &Fitted, out: &Path) -> Result<()> {
    std::fs::write(out, &fitted.text).with_context(|| format!("cannot write {}", out.display()))?;
    let mut output = stdout().lock();
    writeln!(output, "{}\nwritten: {}, {} bytes", fitted.report, out.display(), fitted.text.len())?;
    Ok(())
}
