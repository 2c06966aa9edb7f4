//! The unprivileged account for PostgreSQL when the tests run as root: it refuses to run as root.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use nix::unistd::{Gid, Uid, User};

/// A system user that child processes run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    user: Uid,
    group: Gid,
}

impl Account {
    /// The account to drop to: `postgres`, else `nobody`. `None` when we are not root.
    pub(crate) fn unprivileged() -> Result<Option<Self>> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        for name in ["postgres", "nobody"] {
            let user = User::from_name(name).with_context(|| format!("cannot look up the user {name}"))?;
            if let Some(user) = user.filter(|user| !user.uid.is_root()) {
                return Ok(Some(Self { user: user.uid, group: user.gid }));
            }
        }
        bail!(
            "PostgreSQL refuses to run as root and there is neither a user postgres nor nobody: add one with `useradd -r postgres`"
        )
    }

    /// The account that owns existing data, as which the server must run. `None` when we are not root.
    pub(crate) fn owner_of(path: &Path) -> Result<Option<Self>> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if metadata.uid() == 0 {
            bail!(
                "{} belongs to root, as whom PostgreSQL refuses to run: give it to another user",
                path.display()
            );
        }
        Ok(Some(Self { user: Uid::from_raw(metadata.uid()), group: Gid::from_raw(metadata.gid()) }))
    }

    pub(crate) fn user_id(&self) -> u32 {
        self.user.as_raw()
    }

    pub(crate) fn group_id(&self) -> u32 {
        self.group.as_raw()
    }

    /// Whether the account can reach `folder`, which needs search permission on every folder above it too.
    ///
    /// Tried rather than computed, because access lists and mount options decide as well.
    pub(crate) fn can_enter(&self, folder: &Path) -> Result<bool> {
        let status = Command::new("/bin/sh")
            .args(["-c", "cd \"$1\"", "sh"])
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .gid(self.group_id())
            .uid(self.user_id())
            .status()
            .context("cannot run /bin/sh as an unprivileged user")?;
        Ok(status.success())
    }

    /// Makes the account the owner of a file or folder.
    pub(crate) fn make_owner_of(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.user_id()), Some(self.group_id()))
            .with_context(|| format!("cannot give {} to user {}", path.display(), self.user_id()))
    }
}
