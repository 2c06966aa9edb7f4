//! `assay weights`: describes a weights file. Also loads the scorer for other commands.

use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use assay_scoring::{Scorer, Weights};
use assay_scoring_fit::describe;

/// Describes a weights file if this version accepts it.
pub fn run(file: &Path) -> Result<()> {
    let text = read(file)?;
    let weights = Weights::parse(&text, Scorer::builtin()?.reader_sha256())
        .with_context(|| file.display().to_string())?;
    stdout().lock().write_all(describe(&weights).as_bytes())?;
    Ok(())
}

/// The built-in scorer, with the weights of a file where one is given.
pub fn scorer(weights: Option<&Path>) -> Result<Scorer> {
    with_weights(Scorer::builtin()?, weights)
}

pub fn with_weights(scorer: Scorer, weights: Option<&Path>) -> Result<Scorer> {
    let Some(path) = weights else {
        return Ok(scorer);
    };
    scorer.with_weights(&read(path)?).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
