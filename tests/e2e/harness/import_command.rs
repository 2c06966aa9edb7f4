//! What `assay import` reports.

use std::process::Output;

use anyhow::{Result, ensure};

/// Checks the exit code, and the summary in the first line of the output: how many conversations were accepted, duplicates and
/// refused.
pub fn finishes(
    output: &Output,
    code: i32,
    (accepted, duplicate, refused): (usize, usize, usize),
) -> Result<()> {
    let summary = format!("{accepted} accepted, {duplicate} duplicate, {refused} refused in ");
    ensure!(
        output.status.code() == Some(code),
        "exit code {:?} instead of {code}: {output:?}",
        output.status.code()
    );
    ensure!(
        String::from_utf8_lossy(&output.stdout).starts_with(&summary),
        "{summary:?} is not in {output:?}"
    );
    Ok(())
}
