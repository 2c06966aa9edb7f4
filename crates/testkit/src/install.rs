//! Installs a missing server with apt-get, without starting it as a system service.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use nix::unistd::Uid;

use crate::search_path;

/// Held while installing: tests run as several processes that may all miss the same server.
const LOCK: &str = "/run/assay-install.lock";

/// Policy script that Debian's packages call before they start a service (invoke-rc.d(8)).
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// Exit code 101: action forbidden by policy.
const FORBID_STARTING: &str = "#!/bin/sh\nexit 101\n";

/// Returns the result of `find`; installs `package` when it finds nothing.
///
/// # Errors
/// When the server is missing and cannot be installed (no root, no apt-get, no network); the message says what to
/// install and how.
pub(crate) fn find_or_install<T>(package: &str, find: impl Fn() -> Result<Option<T>>) -> Result<T> {
    if let Some(found) = find()? {
        return Ok(found);
    }
    let advice = format!("install it with `sudo apt-get install -y --no-install-recommends {package}`");
    if !Uid::effective().is_root() {
        bail!("{package} is not installed and only root may install it: {advice}");
    }
    let Some(apt_get) = search_path::find("apt-get") else {
        bail!(
            "{package} is not installed and this system has no apt-get: install {package} with its package tool"
        );
    };
    let lock = File::create(LOCK).with_context(|| format!("cannot create {LOCK}"))?;
    lock.lock().with_context(|| format!("cannot lock {LOCK}"))?;
    if let Some(found) = find()? {
        return Ok(found);
    }
    install(&apt_get, package)
        .with_context(|| format!("{package} is missing and could not be installed: {advice}"))?;
    find()?.with_context(|| {
        format!("apt-get installed {package}, but its programs are not where they are expected")
    })
}

fn install(apt_get: &Path, package: &str) -> Result<()> {
    tracing::info!(package, "installing a missing package with apt-get");
    let _policy = ServicePolicy::forbid_starting(Path::new(SERVICE_POLICY))?;
    if apt(apt_get, &["install", package])? {
        return Ok(());
    }
    // The lists of a fresh container image are empty or name versions that are gone.
    if !apt(apt_get, &["update"])? {
        bail!("`apt-get update` failed, see its output above");
    }
    if !apt(apt_get, &["install", package])? {
        bail!("`apt-get install {package}` failed, see its output above");
    }
    Ok(())
}

/// Runs apt-get and returns whether it succeeded. Its output goes to standard error: standard output is ours.
fn apt(apt_get: &Path, arguments: &[&str]) -> Result<bool> {
    let status = Command::new(apt_get)
        .args([
            "-qq",
            "-y",
            "--no-install-recommends",
            "-o",
            "DPkg::Lock::Timeout=300",
            "-o",
            "Dpkg::Use-Pty=0",
        ])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("RUNLEVEL", "1")
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .with_context(|| format!("cannot run {}", apt_get.display()))?;
    Ok(status.success())
}

/// A policy against starting services, removed when dropped.
struct ServicePolicy {
    /// The file to remove, unless it is not ours.
    ours: Option<PathBuf>,
}

impl ServicePolicy {
    /// An existing policy of the machine is kept.
    fn forbid_starting(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
        match file {
            Ok(mut file) => {
                let policy = Self { ours: Some(path.to_owned()) };
                file.write_all(FORBID_STARTING.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(policy)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Self { ours: None }),
            Err(error) => Err(error).with_context(|| format!("cannot create {}", path.display())),
        }
    }
}

impl Drop for ServicePolicy {
    fn drop(&mut self) {
        let Some(path) = &self.ours else { return };
        if let Err(error) = fs::remove_file(path) {
            let path = path.display();
            tracing::error!(%error, "cannot remove {path}: remove it, or no package can start its service");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn service_policy_is_removed_after_installing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy-rc.d");
        let policy = ServicePolicy::forbid_starting(&path).unwrap();
        assert_eq!(Command::new(&path).status().unwrap().code(), Some(101));
        drop(policy);
        assert!(!path.exists());
    }

    #[test]
    fn existing_service_policy_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy-rc.d");
        fs::write(&path, "the owner's").unwrap();
        drop(ServicePolicy::forbid_starting(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "the owner's");
    }

    #[test]
    fn installed_package_is_not_installed_again() {
        let asked = Cell::new(0);
        let found = find_or_install("no-such-package", || {
            asked.set(asked.get() + 1);
            Ok(Some("found"))
        });
        assert_eq!((found.unwrap(), asked.get()), ("found", 1));
    }
}
