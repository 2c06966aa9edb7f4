//! A folder that goes away with this process, even if the process is killed.
//!
//! `Drop` does not run for statics nor after SIGKILL, and the data folder of every test process would stay behind
//! (40 MB each). A tiny shell waits for the end of a pipe that only this process holds, then removes the folder.

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

/// A fresh folder in the system's folder for temporary files.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    janitor: Child,
}

impl ScratchFolder {
    /// Everybody may look into it, because the server that writes there may run as another user.
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
    fn a_dropped_folder_is_gone_with_its_contents() {
        let scratch = ScratchFolder::create("assay-scratch-test-").unwrap();
        fs::write(scratch.path().join("file"), "text").unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
