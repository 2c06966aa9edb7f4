//! The folder of a stack and the lock of its supervisor.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// The absolute path of the folder and of everything in it.
#[derive(Clone, Debug)]
pub(super) struct StackFolder(PathBuf);

/// Held by the supervisor. The kernel releases it when the process ends, however that happens.
#[derive(Debug)]
pub(super) struct StackLock {
    _file: File,
}

impl StackFolder {
    /// Creates the folder if it is missing.
    pub(super) fn create(path: &Path) -> Result<Self> {
        for name in ["logs", "pids", "processes", "objects"] {
            let folder = path.join(name);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Self::open(path)
    }

    /// The folder of a stack that has been started before.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let absolute = path.canonicalize().with_context(|| {
            format!("there is no stack in {}: start one with `make stack`", path.display())
        })?;
        Ok(Self(absolute))
    }

    /// Takes the lock; `None` when a supervisor holds it.
    pub(super) fn try_lock(&self) -> Result<Option<StackLock>> {
        let path = self.0.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(StackLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn postgres(&self) -> PathBuf {
        self.0.join("postgres")
    }

    pub(super) fn rabbitmq(&self) -> PathBuf {
        self.0.join("rabbitmq")
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.0.join("objects")
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.0.join("logs").join(format!("{name}.log"))
    }

    pub(super) fn pid_file(&self, name: &str) -> PathBuf {
        self.0.join("pids").join(format!("{name}.pid"))
    }

    pub(super) fn processes(&self) -> PathBuf {
        self.0.join("processes")
    }

    pub(super) fn secrets(&self) -> PathBuf {
        self.0.join("secrets")
    }

    pub(super) fn environment(&self) -> PathBuf {
        self.0.join("env")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_lock_is_exclusive_until_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let stack = StackFolder::create(folder.path()).unwrap();
        let lock = stack.try_lock().unwrap();
        assert!(lock.is_some());
        assert!(stack.try_lock().unwrap().is_none());
        drop(lock);
        assert!(stack.try_lock().unwrap().is_some());
    }
}
