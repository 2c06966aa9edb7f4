//! `assay-stack down`: stops a stack from another process, mainly after its supervisor crashed.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};

use super::{
    GRACE,
    folder::{StackFolder, StackLock},
    pid_files::{PidFiles, SUPERVISOR},
    unit::{Phase, stop_signal},
};
use crate::{identity::ProcessIdentity, postgres, process::Signal, rabbit, wait::wait_for};

/// How long a living supervisor may take for its four phases.
const SUPERVISOR_GRACE: Duration = Duration::from_secs(75);

/// How long a killed process may take to disappear: on some machines orphans are reaped every few seconds.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Stops every process of the stack in `folder` and returns the names of those that still ran.
///
/// Recorded processes are signalled only if their start time matches the record: a pid alone may have been reused. Then the
/// processes that a killed PostgreSQL or RabbitMQ left behind are found by their folder and signalled.
///
/// # Errors
/// When a process belongs to another user or does not end.
pub fn down(folder: &Path) -> Result<Vec<String>> {
    if !folder.join("processes").exists() {
        return Ok(Vec::new());
    }
    let folder = StackFolder::open(folder)?;
    let pid_files = PidFiles::new(folder.clone());
    let mut stopped = Vec::new();
    // Held until the end, so that no stack can be started here meanwhile.
    let _lock = take_lock(&folder, &pid_files, &mut stopped)?;
    let names = pid_files.names()?;
    for phase in Phase::ALL {
        let members = names.iter().filter(|name| *name != SUPERVISOR && Phase::of(name) == phase);
        stopped.extend(stop_all(&pid_files, members)?);
    }
    clear_leftovers(&folder)?;
    for name in &names {
        pid_files.remove(name)?;
    }
    Ok(stopped)
}

/// Stops a running supervisor and takes the lock that it releases.
fn take_lock(folder: &StackFolder, pid_files: &PidFiles, stopped: &mut Vec<String>) -> Result<StackLock> {
    if let Some(lock) = folder.try_lock()? {
        return Ok(lock);
    }
    let Some(supervisor) = pid_files.living(SUPERVISOR)? else {
        bail!(
            "a process that is not recorded holds the lock of {}: try again in a moment",
            folder.path().display()
        );
    };
    supervisor.signal(Signal::SIGTERM)?;
    if !ends_within(&supervisor, SUPERVISOR_GRACE) {
        kill(SUPERVISOR, &supervisor)?;
    }
    stopped.push(SUPERVISOR.to_owned());
    wait_for("the lock of the stopped supervisor", KILL_LIMIT, || folder.try_lock())
}

/// Stops the members of a phase together; returns the names of those that ran.
fn stop_all<'a>(pid_files: &PidFiles, names: impl Iterator<Item = &'a String>) -> Result<Vec<String>> {
    let mut running = Vec::new();
    for name in names {
        if let Some(process) = pid_files.living(name)? {
            process.signal(stop_signal(name))?;
            running.push((name, process));
        }
    }
    let all_ended = || Ok((!running.iter().any(|(_, process)| process.is_alive())).then_some(()));
    // Processes that are still running after the grace period are killed.
    let _ = wait_for("processes to stop", GRACE, all_ended);
    for (name, process) in &running {
        if process.is_alive() {
            kill(name, process)?;
        }
    }
    Ok(running.into_iter().map(|(name, _)| name.clone()).collect())
}

fn kill(name: &str, process: &ProcessIdentity) -> Result<()> {
    tracing::warn!(process = name, pid = process.pid(), "did not stop in time: killing it");
    process.signal(Signal::SIGKILL)?;
    if !ends_within(process, KILL_LIMIT) {
        bail!("{name} (process {}) survives SIGKILL: look at it with `ps`", process.pid());
    }
    Ok(())
}

fn ends_within(process: &ProcessIdentity, limit: Duration) -> bool {
    wait_for("a process to end", limit, || Ok((!process.is_alive()).then_some(()))).is_ok()
}

/// Signals the child processes that a killed PostgreSQL or RabbitMQ left behind, which are in no record, until none is left.
fn clear_leftovers(folder: &StackFolder) -> Result<()> {
    let places = [("PostgreSQL", folder.postgres().join("data")), ("RabbitMQ", folder.rabbitmq())];
    let clears: [fn(&Path) -> Result<bool>; 2] = [postgres::clear_leftovers, rabbit::clear_leftovers];
    for ((name, place), clear) in places.into_iter().zip(clears) {
        wait_for(&format!("the orphans of {name} to end"), GRACE, || Ok(clear(&place)?.then_some(())))
            .with_context(|| format!("look for them with `fuser {}`", place.display()))?;
    }
    Ok(())
}
