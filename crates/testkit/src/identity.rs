//! Distinguishes a process from a later one with the same pid.
//!
//! Pids are reused, so a pid file alone must never decide which process is killed. The start time of a process together
//! with the boot id is unique.

use std::{
    fmt::{self, Display},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    str::FromStr,
};

use anyhow::{Context as _, Result, bail};
use nix::{errno::Errno, sys::signal};

use crate::process::{Signal, as_pid};

/// A process that existed at some time: its id, when it started and in which boot of the machine.
///
/// Written and parsed as `PID TICKS BOOT`, with the start in clock ticks since the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    pid: u32,
    started: u64,
    boot: String,
}

impl ProcessIdentity {
    /// The process that has this id now; `None` when there is none or only its exit status is left.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let started = start_time(&stat)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Self { pid, started, boot: boot.trim().to_owned() })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether this very process still runs.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Sends a signal to this very process, if it still runs.
    ///
    /// # Errors
    /// When the process belongs to another user.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if !self.is_alive() {
            return Ok(());
        }
        match signal::kill(as_pid(self.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot send {signal} to process {}", self.pid)),
        }
    }
}

impl Display for ProcessIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.pid, self.started, self.boot)
    }
}

impl FromStr for ProcessIdentity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split_whitespace();
        let (Some(pid), Some(started), Some(boot), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            bail!("expected `PID TICKS BOOT`, found `{}`", text.trim());
        };
        Ok(Self { pid: pid.parse()?, started: started.parse()?, boot: boot.to_owned() })
    }
}

/// The living processes that run `program` (the name of its file) with `folder` as their working folder.
///
/// PostgreSQL's processes all work in their data folder: this finds those that outlive a killed postmaster. Processes
/// whose links in `/proc` we may not read are not ours and are skipped, as is a user's shell in that folder.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn processes_in_folder(program: &str, folder: &Path) -> Result<Vec<ProcessIdentity>> {
    let folder = match folder.canonicalize() {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot resolve {}", folder.display())),
    };
    living_where(|process| {
        let works_there = fs::read_link(process.join("cwd")).is_ok_and(|working| working == folder);
        works_there && fs::read_link(process.join("exe")).is_ok_and(|file| file.ends_with(program))
    })
}

/// The living processes that have this variable in their environment, inherited or set.
pub(crate) fn processes_with_variable(name: &str, value: &Path) -> Result<Vec<ProcessIdentity>> {
    let wanted = [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    living_where(|process| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    })
}

/// The living processes whose folder in `/proc` passes the test.
fn living_where(passes: impl Fn(&Path) -> bool) -> Result<Vec<ProcessIdentity>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list /proc")? {
        let entry = entry.context("cannot list /proc")?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if passes(&entry.path()) {
            found.extend(ProcessIdentity::of(pid));
        }
    }
    Ok(found)
}

/// The start time in a line of `/proc/PID/stat`, unless the process is dead (proc(5), fields 3 and 22).
fn start_time(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?;
    let is_dead = matches!(state, "Z" | "X");
    if is_dead { None } else { started.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_survives_formatting_and_parsing() {
        let own = ProcessIdentity::of(std::process::id()).unwrap();
        let read: ProcessIdentity = own.to_string().parse().unwrap();
        assert!(read.is_alive());
    }

    #[test]
    fn reused_pid_is_another_identity() {
        let own = ProcessIdentity::of(std::process::id()).unwrap();
        let earlier = ProcessIdentity { started: own.started - 1, ..own.clone() };
        let other_boot = ProcessIdentity { boot: "another".to_owned(), ..own };
        assert!(!earlier.is_alive());
        assert!(!other_boot.is_alive());
    }

    #[test]
    fn start_time_is_parsed_after_a_name_with_brackets() {
        let line = "12 (a) (b c)) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 1";
        assert_eq!(start_time(line), Some(98765));
    }

    #[test]
    fn zombie_is_not_alive() {
        let line = "12 (a) Z 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 1";
        assert_eq!(start_time(line), None);
    }

    #[test]
    fn invalid_identity_is_refused() {
        for text in ["", "12", "12 x boot", "12 13 boot more"] {
            assert!(text.parse::<ProcessIdentity>().is_err(), "{text}");
        }
    }
}
