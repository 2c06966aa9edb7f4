//! `assay-stack key`: creates an API key of a running stack and prints only the key on standard output.

use std::{os::unix::process::CommandExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use super::{
    folder::StackFolder,
    settings::{NOT_FOR_THE_EXECUTABLE, StackSettings},
    up::executable,
    variables,
};

/// Replaces this process by `assay keys create --organization NAME`, with the settings of the stack; returns only on failure.
///
/// # Errors
/// When no stack runs in the folder or the executable cannot be run.
pub fn print_key(settings: &StackSettings, assay: Option<&Path>, organization: &str) -> Result<()> {
    let assay = executable(assay)?;
    let folder = StackFolder::open(&settings.folder)?;
    // Without a supervisor the ports in the file may belong to other programs.
    if folder.try_lock()?.is_some() {
        bail!("no stack runs in {}: start one with `make stack`", folder.path().display());
    }
    let stack = variables::read(&folder.environment())?;
    let stack =
        stack.with_context(|| format!("the stack in {} is still starting", folder.path().display()))?;
    let mut command = Command::new(&assay);
    command.args(["keys", "create", "--organization", organization]).envs(stack);
    for name in NOT_FOR_THE_EXECUTABLE {
        command.env_remove(name);
    }
    // The key goes from the executable to our standard output without passing through us.
    Err(command.exec()).with_context(|| format!("cannot run {}", assay.display()))
}
