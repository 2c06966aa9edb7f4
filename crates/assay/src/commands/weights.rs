//! The scorer that a command works with.

use std::path::Path;

use anyhow::{Context, Result};
use assay_scoring::Scorer;

/// With the weights of a file, or with the shipped ones.
pub fn scorer(weights: Option<&Path>) -> Result<Scorer> {
    let Some(path) = weights else {
        return Ok(Scorer::builtin()?);
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Scorer::fitted(&text).with_context(|| path.display().to_string())
}
