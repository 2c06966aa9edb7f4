//! `assay evaluate`: measures a scorer's agreement with labels.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::Result;
use assay_scoring_fit::{ReviewedConversations, evaluate};

use super::weights;
use crate::cli::ReviewedFiles;

pub fn run(files: &ReviewedFiles, weights_file: Option<&Path>) -> Result<()> {
    let scorer = weights::scorer(weights_file)?;
    let reviewed = ReviewedConversations::read(&files.conversations, &files.labels)?;
    stdout().lock().write_all(evaluate(&scorer, &reviewed)?.as_bytes())?;
    Ok(())
}
