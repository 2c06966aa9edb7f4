//! `assay fit`: fits weights to a user's own reviewers.

use std::io::{Write, stdout};

use anyhow::{Context, Result};
use assay_scoring_fit::{ReviewedConversations, WorseWeights, fit_weights};

use crate::cli::FitArguments;

/// Writes a weights file and prints the figures on standard output.
pub fn run(arguments: &FitArguments) -> Result<()> {
    let FitArguments { reviewed: files, out, force } = arguments;
    let reviewed = ReviewedConversations::read(&files.conversations, &files.labels)?;
    let worse = if *force { WorseWeights::Accept } else { WorseWeights::Refuse };
    let fitted = fit_weights(&reviewed, worse)?;
    std::fs::write(out, &fitted.text).with_context(|| format!("cannot write {}", out.display()))?;
    let mut output = stdout().lock();
    writeln!(output, "{}\nwritten: {}, {} bytes", fitted.report, out.display(), fitted.text.len())?;
    Ok(())
}
