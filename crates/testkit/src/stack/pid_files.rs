//! Records of the stack's running processes: pid files for people and tests, identities for `assay-stack down`.

use std::fs;

use anyhow::{Context as _, Result, bail};

use super::{folder::StackFolder, server_names::EPMD};
use crate::{
    files::{read_if_there, remove_if_there, write_private},
    identity::ProcessIdentity,
};

/// The record of the supervisor itself, without a pid file: only the supervised processes have one.
pub(super) const SUPERVISOR: &str = "supervisor";

/// The records of one stack.
#[derive(Clone, Debug)]
pub(super) struct PidFiles {
    folder: StackFolder,
}

impl PidFiles {
    pub(super) fn new(folder: StackFolder) -> Self {
        Self { folder }
    }

    /// Records that the process `name` runs as `pid`.
    pub(super) fn record(&self, name: &str, pid: u32) -> Result<()> {
        // A process that has already ended needs no record; its pid file shows that it was started.
        if let Some(identity) = ProcessIdentity::of(pid) {
            write_private(&self.folder.processes().join(name), &format!("{identity}\n"))?;
        }
        if has_pid_file(name) {
            write_private(&self.folder.pid_file(name), &format!("{pid}\n"))?;
        }
        Ok(())
    }

    /// Removes the record of a stopped process.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        remove_if_there(&self.folder.processes().join(name))?;
        remove_if_there(&self.folder.pid_file(name))
    }

    /// The process that was recorded as `name` if it still runs.
    pub(super) fn living(&self, name: &str) -> Result<Option<ProcessIdentity>> {
        let path = self.folder.processes().join(name);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        let identity: ProcessIdentity =
            text.parse().with_context(|| format!("{} is damaged: remove it", path.display()))?;
        Ok(identity.is_alive().then_some(identity))
    }

    /// The names of all records, of living processes and of dead ones.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let folder = self.folder.processes();
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.with_context(|| format!("cannot list {}", folder.display()))?.file_name();
            names.extend(name.to_str().filter(|name| !name.ends_with(".new")).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Refuses to go on while processes of a stack that lost its supervisor still run.
    pub(super) fn refuse_leftovers(&self) -> Result<()> {
        for name in self.names()? {
            if let Some(process) = self.living(&name)? {
                bail!(
                    "{name} (process {}) of a crashed stack in {} still runs: clean up with `make stack-down`",
                    process.pid(),
                    self.folder.path().display()
                );
            }
        }
        Ok(())
    }
}

fn has_pid_file(name: &str) -> bool {
    name != SUPERVISOR && name != EPMD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_process_is_found_until_removed() {
        let folder = tempfile::tempdir().unwrap();
        let stack = StackFolder::create(folder.path()).unwrap();
        let pid_files = PidFiles::new(stack.clone());
        pid_files.record("ingest", std::process::id()).unwrap();
        assert_eq!(pid_files.living("ingest").unwrap().unwrap().pid(), std::process::id());
        assert_eq!(
            fs::read_to_string(stack.pid_file("ingest")).unwrap().trim(),
            std::process::id().to_string()
        );
        assert!(pid_files.refuse_leftovers().is_err());
        pid_files.remove("ingest").unwrap();
        assert!(pid_files.names().unwrap().is_empty());
        assert!(!stack.pid_file("ingest").exists());
    }

    #[test]
    fn record_with_a_reused_pid_is_not_living() {
        let folder = tempfile::tempdir().unwrap();
        let stack = StackFolder::create(folder.path()).unwrap();
        let text = format!("{} 1 some-earlier-boot\n", std::process::id());
        fs::write(stack.processes().join("ingest"), text).unwrap();
        let pid_files = PidFiles::new(stack);
        assert_eq!(pid_files.living("ingest").unwrap(), None);
        pid_files.refuse_leftovers().unwrap();
    }
}
