//! A memory limit that the kernel enforces: a control group (version 1 or 2) of one process. A process that exceeds it is killed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::random_name;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A control group; removed when it is dropped, after its process has ended.
#[derive(Debug)]
pub struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// Creates a group with a limit; `None` when this user may not create control groups with a memory limit.
    ///
    /// # Errors
    /// When the limit of the created group cannot be set.
    pub fn create(bytes: u64) -> Result<Option<Self>> {
        let groups = fs::read_to_string("/proc/self/cgroup").context("cannot read our control group")?;
        let name = random_name("assay-memory")?;
        for (parent, limit_file) in parents(&groups) {
            let folder = parent.join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self { folder };
            let file = group.folder.join(limit_file);
            if file.exists() {
                fs::write(&file, bytes.to_string())
                    .with_context(|| format!("cannot write {}", file.display()))?;
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    /// The file into which a process writes its id to join the group.
    pub(crate) fn join_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// How often the kernel has killed a process of the group because of the limit.
    ///
    /// # Errors
    /// When the group cannot be read.
    pub fn kills(&self) -> Result<u64> {
        let files = ["memory.oom_control", "memory.events"].map(|file| self.folder.join(file));
        let file = files.iter().find(|file| file.exists()).context("the group counts no kills")?;
        let text = fs::read_to_string(file)?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        Ok(count.with_context(|| format!("no oom_kill in {}", file.display()))?.trim().parse()?)
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Best effort: an empty group costs nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Groups in which a new one may be created, each with the file name of the limit. In version 1 this is our own group, in
/// version 2 its parent: a group with processes cannot have groups with limits.
fn parents(groups: &str) -> Vec<(PathBuf, &'static str)> {
    let mut parents = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "memory") {
            parents.push((Path::new(MOUNT).join("memory").join(path), "memory.limit_in_bytes"));
        } else if controllers.is_empty() {
            let own = Path::new(MOUNT).join(path);
            parents.extend(
                own.parent()
                    .filter(|parent| parent.starts_with(MOUNT))
                    .map(|parent| (parent.to_owned(), "memory.max")),
            );
        }
    }
    parents
}

/// The memory limit in a Kubernetes manifest of one container, in bytes.
///
/// # Errors
/// When it cannot be read or has none.
pub fn memory_limit_of_manifest(manifest: &Path) -> Result<u64> {
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let limits: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("limits: {memory: ")?.strip_suffix('}'))
        .collect();
    ensure!(limits.len() == 1, "{} has {} memory limits", manifest.display(), limits.len());
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1_u64 << 30)];
    let found = units.iter().find_map(|(unit, bytes)| Some((limits[0].strip_suffix(unit)?, bytes)));
    let (count, unit) = found.with_context(|| format!("unknown unit: {}", limits[0]))?;
    Ok(count.parse::<u64>()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let version_1 = parents("5:cpu,cpuacct:/a\n4:memory:/jobs/7\n0::/\n");
        assert_eq!(version_1, [(PathBuf::from("/sys/fs/cgroup/memory/jobs/7"), "memory.limit_in_bytes")]);
        let version_2 = parents("0::/user.slice/session-1.scope\n");
        assert_eq!(version_2, [(PathBuf::from("/sys/fs/cgroup/user.slice"), "memory.max")]);
    }
}
