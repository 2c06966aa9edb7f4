//! Locates the PostgreSQL programs of this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::search_path::{self, advice};

/// `DROP DATABASE … WITH (FORCE)` came with this version.
const OLDEST_MAJOR: u32 = 13;

/// A folder that holds `postgres` and `initdb` of one version.
#[derive(Clone, Debug)]
pub(super) struct PostgresBinaries {
    folder: PathBuf,
    major: u32,
}

impl PostgresBinaries {
    /// The version that wrote the existing data of `cluster` (no other one opens it), else the newest installed version.
    pub(super) fn for_cluster(cluster: &Path) -> Result<Self> {
        let version_file = cluster.join("PG_VERSION");
        if !version_file.exists() {
            return Self::newest_installed();
        }
        let text = fs::read_to_string(&version_file).with_context(|| {
            format!("cannot read {}: was it written by another user?", version_file.display())
        })?;
        let wanted: u32 = text.trim().parse().with_context(|| format!("`{}` is no version", text.trim()))?;
        Self::newest(|major| major == wanted)?
            .with_context(|| advice(&format!("postgresql-{wanted}")))
            .with_context(|| format!("{} was written by PostgreSQL {wanted}", cluster.display()))
    }

    /// The newest installed version.
    pub(super) fn newest_installed() -> Result<Self> {
        Self::newest(|_major| true)?.with_context(|| advice("postgresql"))
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn newest(accept: impl Fn(u32) -> bool) -> Result<Option<Self>> {
        let mut found: Vec<Self> = Vec::new();
        for folder in candidates() {
            if folder.join("postgres").is_file() && folder.join("initdb").is_file() {
                let major = major_version(&folder.join("postgres"))?;
                if major >= OLDEST_MAJOR && accept(major) {
                    found.push(Self { folder, major });
                }
            }
        }
        // `max_by_key` returns the last of equal versions: reversed, that is the first candidate.
        Ok(found.into_iter().rev().max_by_key(|binaries| binaries.major))
    }
}

/// Debian installs versions side by side; elsewhere `pg_config` or the search path finds one.
fn candidates() -> Vec<PathBuf> {
    let mut folders = search_path::folders_between("/usr/lib/postgresql/", "bin");
    if let Some(pg_config) = search_path::find("pg_config")
        && let Ok(output) = Command::new(pg_config).arg("--bindir").output()
    {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    folders.extend(search_path::folders());
    folders
}

/// The first number of `postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)`.
fn major_version(postgres: &Path) -> Result<u32> {
    let output = Command::new(postgres).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", postgres.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match parse_major(&text) {
        Some(major) => Ok(major),
        None => bail!("{} --version answers `{}`, which names no version", postgres.display(), text.trim()),
    }
}

fn parse_major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once(") ")?;
    let digits = version.split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_version_is_parsed_from_releases_and_betas() {
        for (text, major) in [
            ("postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) devel\n", None),
            ("", None),
        ] {
            assert_eq!(parse_major(text), major, "{text}");
        }
    }
}
