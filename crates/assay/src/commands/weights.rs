//! `assay weights`: what a weights file holds; and the scorer that a command works with.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use assay_scoring::{Adjustment, Scorer};
use assay_scoring_fit::describe;

/// Prints what a weights file holds, when this version takes it.
pub fn run(file: &Path) -> Result<()> {
    let text = read(file)?;
    let adjustment = Adjustment::parse(&text, Scorer::builtin()?.reader_sha256())
        .with_context(|| file.display().to_string())?;
    stdout().lock().write_all(describe(&adjustment).as_bytes())?;
    Ok(())
}

/// With the weights of a file, or with the shipped ones.
pub fn scorer(weights: Option<&Path>) -> Result<Scorer> {
    with_weights(Scorer::builtin()?, weights)
}

/// The scorer with the weights of a file, where one is named.
pub fn with_weights(scorer: Scorer, weights: Option<&Path>) -> Result<Scorer> {
    let Some(path) = weights else {
        return Ok(scorer);
    };
    scorer.with_weights(&read(path)?).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
