//! The database cluster on disk: its location, its owner, and its initialisation.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::binaries::PostgresBinaries;
use crate::{
    account::Account,
    files::write_private,
    process::{Output, Process, ProcessSpec},
    random,
};

/// The administrator of the cluster.
pub(super) const ADMINISTRATOR: &str = "assay_admin";

/// `initdb` takes half a second; this is for a machine under heavy load.
const INITDB_LIMIT: Duration = Duration::from_secs(120);

/// An initialised database cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) binaries: PostgresBinaries,
    pub(super) data: PathBuf,
    pub(super) account: Option<Account>,
    pub(super) password: String,
}

impl Cluster {
    /// Opens or creates the cluster in `folder`: its data in `folder/data`, the administrator's password in
    /// `folder/password`.
    pub(super) fn open_or_create(folder: &Path, log: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let folder = folder.canonicalize().with_context(|| format!("cannot resolve {}", folder.display()))?;
        let password_file = folder.join("password");
        let data = folder.join("data");
        if data.join("PG_VERSION").exists() && password_file.exists() {
            let data = data.canonicalize()?;
            let binaries = PostgresBinaries::for_cluster(&data)?;
            let account = Account::owner_of(&data)?;
            let password = fs::read_to_string(&password_file)
                .with_context(|| format!("cannot read {}", password_file.display()))?;
            return Ok(Self { binaries, data, account, password });
        }
        Self::create(&folder, log)
    }

    fn create(folder: &Path, log: &Path) -> Result<Self> {
        let binaries = PostgresBinaries::for_cluster(&folder.join("data"))?;
        let account = Account::unprivileged()?;
        let data = data_location(folder, account.as_ref())?;
        let cluster = Self { binaries, data, account, password: random::hex_secret(24)? };
        write_private(&folder.join("password"), &cluster.password)?;
        cluster.initialise(log)?;
        Ok(cluster)
    }

    /// A process that runs as the cluster's account, in an environment without our variables.
    pub(super) fn process(&self, program: &str, log: &Path) -> ProcessSpec {
        ProcessSpec::new(program, self.binaries.program(program), Output::File(log.to_owned()))
            .clean_environment()
            .variable("PATH", env::join_paths(crate::search_path::folders()).unwrap_or_default())
            .variable("LC_ALL", "C")
            .variable("TZ", "UTC")
            .folder("/")
            .account(self.account.clone())
    }

    /// Runs `initdb` in a temporary folder and renames it, so a cluster is complete or absent.
    fn initialise(&self, log: &Path) -> Result<()> {
        let unfinished = self.data.with_extension("new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)
                .with_context(|| format!("cannot remove {}", unfinished.display()))?;
        }
        fs::create_dir(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
        fs::set_permissions(&unfinished, Permissions::from_mode(0o700))?;
        if let Some(account) = &self.account {
            account.make_owner_of(&unfinished)?;
        }
        let password_file = self.data.with_extension("password");
        write_private(&password_file, &self.password)?;
        if let Some(account) = &self.account {
            account.make_owner_of(&password_file)?;
        }
        let outcome = self.run_initdb(&unfinished, &password_file, log);
        fs::remove_file(&password_file)
            .with_context(|| format!("cannot remove {}", password_file.display()))?;
        outcome?;
        fs::rename(&unfinished, &self.data)
            .with_context(|| format!("cannot move {} to {}", unfinished.display(), self.data.display()))
    }

    fn run_initdb(&self, data: &Path, password_file: &Path, log: &Path) -> Result<()> {
        let spec = self
            .process("initdb", log)
            .arguments([OsStr::new("-D"), data.as_os_str()])
            .arguments([OsStr::new("--pwfile"), password_file.as_os_str()])
            // The C locale exists everywhere and compares text byte for byte.
            .arguments(["--username", ADMINISTRATOR, "--encoding", "UTF8", "--locale", "C"])
            .arguments(["--auth", "scram-sha-256", "--no-sync", "--no-instructions"])
            .on_parent_death(Some(crate::process::Signal::SIGKILL));
        let initdb = Process::spawn(&spec)?;
        match initdb.wait(INITDB_LIMIT) {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("initdb ended with {status}: read {}", log.display()),
            None => {
                bail!("initdb did not finish within {} s: read {}", INITDB_LIMIT.as_secs(), log.display())
            }
        }
    }
}

/// `folder/data`, or a folder elsewhere with a symbolic link to it when the server's account cannot reach `folder`:
/// below `/root`, for example, no other user can.
fn data_location(folder: &Path, account: Option<&Account>) -> Result<PathBuf> {
    let data = folder.join("data");
    if fs::symlink_metadata(&data).is_ok() {
        // A complete cluster would have been opened, and `initialise` creates an unfinished one under another name. So this is
        // a link of ours without its target, or not ours.
        let target = fs::read_link(&data);
        let target =
            target.with_context(|| format!("{} is not a database cluster: remove it", data.display()))?;
        tracing::warn!(missing = %target.display(), "the data that {} pointed to is gone: starting empty", data.display());
        fs::remove_file(&data)?;
    }
    let Some(account) = account else { return Ok(data) };
    if account.can_enter(folder)? {
        return Ok(data);
    }
    let elsewhere = reachable_folder(account)?.join("data");
    tracing::info!(data = %elsewhere.display(), "PostgreSQL's user cannot reach {}: its data lies elsewhere", folder.display());
    symlink(&elsewhere, &data).with_context(|| format!("cannot create the link {}", data.display()))?;
    Ok(elsewhere)
}

fn reachable_folder(account: &Account) -> Result<PathBuf> {
    for parent in [env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")] {
        if parent.is_dir() && account.can_enter(&parent)? {
            let folder = tempfile::Builder::new()
                .prefix("assay-postgres-")
                .permissions(Permissions::from_mode(0o755))
                .tempdir_in(&parent)
                .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
            return Ok(folder.keep());
        }
    }
    bail!(
        "PostgreSQL's user can reach no folder for temporary files: set TMPDIR to one that everybody may enter"
    )
}
