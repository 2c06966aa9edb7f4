//! A temporary folder that is removed even when this process is killed.
//!
//! `Drop` runs neither for statics nor after SIGKILL, and each data folder has 40 MB. A small shell process reads a pipe
//! until this process closes it, then removes the folder.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result};

/// Waits for the end of its input, then removes the folder; repeats while a dying server still writes into it.
const JANITOR: &str = r#"
cat >/dev/null
tries=0
while [ "$tries" -lt 100 ]; do
    rm -rf -- "$1" 2>/dev/null && exit 0
    tries=$((tries + 1))
    sleep 0.1
done
exit 1
"#;

/// Where a private server keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A fresh temporary folder, removed with the server or this process, whichever ends first.
    Temporary,
    /// A persistent folder, reused by the next server started there.
    Folder(PathBuf),
}

impl Location {
    /// The folder, and the owner of a temporary one, whose name begins with `prefix`.
    pub(crate) fn open(&self, prefix: &str) -> Result<(PathBuf, Option<ScratchFolder>)> {
        match self {
            Self::Folder(folder) => Ok((folder.clone(), None)),
            Self::Temporary => {
                let scratch = ScratchFolder::create(prefix)?;
                Ok((scratch.path().to_owned(), Some(scratch)))
            }
        }
    }
}

/// A fresh folder in the system's folder for temporary files.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    janitor: Child,
}

impl ScratchFolder {
    /// Readable by all users, because the server may run as another one.
    pub(crate) fn create(prefix: &str) -> Result<Self> {
        let folder =
            tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o755)).tempdir();
        let folder = folder.context("cannot create a temporary folder")?;
        let janitor = Command::new("/bin/sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(folder.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A test runner that kills our process group must not kill the janitor.
            .process_group(0)
            .spawn()
            .context("cannot run /bin/sh")?;
        Ok(Self { path: folder.keep(), janitor })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        match self.janitor.wait() {
            Ok(status) if status.success() => {}
            outcome => {
                tracing::warn!(folder = %self.path.display(), ?outcome, "a temporary folder stays behind")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn dropped_folder_is_removed_with_its_contents() {
        let scratch = ScratchFolder::create("assay-scratch-test-").unwrap();
        fs::write(scratch.path().join("file"), "text").unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
