//! The data folder of a standalone: one SQLite file per service, the export files, and the secrets.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use assay_platform::runtime::random_bytes;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::settings::Settings;

/// Connections to each database. SQLite allows one writer at a time; the others are readers.
const POOL_SIZE: u32 = 8;

/// An open folder. Holds a lock against a second standalone while it lives.
pub struct DataFolder {
    path: PathBuf,
    _lock: Option<File>,
}

const ADDRESS_FILE: &str = "address";

/// Generated on the first start, so that signed URLs and cursors survive a restart.
#[derive(Serialize, Deserialize)]
struct Secrets {
    service_token_secret: String,
    signing_keys: String,
}

impl DataFolder {
    /// Creates the folder (mode 0700) if it is missing, and locks it.
    pub fn open(path: &Path) -> Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("cannot make the data folder {}", path.display()))?;
        let path = fs::canonicalize(path)?;
        // Also for an existing folder: it holds texts of customers.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot make {} private", path.display()))?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => {
                bail!(
                    "another assay uses the data folder {}: stop it or choose another --data-dir",
                    path.display()
                )
            }
            Err(TryLockError::Error(error)) => Err(error).context("cannot lock the data folder"),
        }
    }

    /// Opens the folder of a standalone that may be running.
    pub fn open_without_lock(path: &Path) -> Result<Self> {
        if !path.join("lock").is_file() {
            bail!("{} is no data folder of `assay standalone`", path.display());
        }
        Ok(Self { path: fs::canonicalize(path)?, _lock: None })
    }

    /// Records the address that the gateway listens on, for commands beside the running process.
    pub fn record_address(&self, address: SocketAddr) -> Result<()> {
        fs::write(self.path.join(ADDRESS_FILE), address.to_string())
            .context("cannot write the gateway's address")
    }

    /// The address that the gateway listened on when it was last started; `None` before the first start.
    pub fn recorded_address(&self) -> Option<SocketAddr> {
        fs::read_to_string(self.path.join(ADDRESS_FILE)).ok()?.trim().parse().ok()
    }

    /// Sets the database of every service to its file in the folder.
    pub fn configure_databases(&self, settings: &mut Settings) {
        let url =
            |schema: &str| format!("sqlite:{}", self.path.join(format!("{schema}.sqlite")).display()).into();
        settings.registry.database_url = url("registry");
        settings.registry.database_pool_size = POOL_SIZE;
        settings.ingest.database_url = url("ingest");
        settings.ingest.database_pool_size = POOL_SIZE;
        settings.scoring.database_url = url("scoring");
        settings.scoring.database_pool_size = POOL_SIZE;
        settings.export.database_url = url("export");
        settings.export.database_pool_size = POOL_SIZE;
        settings.export_worker.database_url = url("export");
        settings.export_worker.database_pool_size = POOL_SIZE;
        settings.webhooks.database_url = url("webhooks");
        settings.webhooks.database_pool_size = POOL_SIZE;
    }

    /// Stores export files in the folder.
    pub fn configure_objects(&self, settings: &mut Settings) -> Result<()> {
        let Ok(url) = Url::from_directory_path(self.path.join("objects")) else {
            bail!("{} is no absolute path", self.path.display());
        };
        settings.objects.url = url.into();
        Ok(())
    }

    /// Uses the folder's own secrets where the settings name none.
    pub fn configure_secrets(&self, settings: &mut Settings) -> Result<()> {
        use secrecy::ExposeSecret;
        let secrets = self.load_or_create_secrets()?;
        if settings.security.service_token_secret.expose_secret().is_empty() {
            settings.security.service_token_secret = secrets.service_token_secret.into();
        }
        if settings.security.signing_keys.expose_secret().is_empty() {
            settings.security.signing_keys = secrets.signing_keys.into();
        }
        Ok(())
    }

    fn load_or_create_secrets(&self) -> Result<Secrets> {
        let path = self.path.join("secrets.json");
        match fs::read(&path) {
            Ok(content) => {
                serde_json::from_slice(&content).with_context(|| format!("{} cannot be read", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let secrets = Secrets {
                    service_token_secret: random_hex()?,
                    signing_keys: format!("k1:{}", random_hex()?),
                };
                write_private(&path, &serde_json::to_vec_pretty(&secrets)?)?;
                Ok(secrets)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
}

fn random_hex() -> Result<String> {
    Ok(hex::encode(random_bytes::<32>()?))
}

/// Atomically writes a file that only its owner may read.
fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folder_is_locked_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::open(folder.path()).unwrap();
        let error = DataFolder::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another assay uses"), "{error}");
        drop(first);
        DataFolder::open(folder.path()).unwrap();
    }

    #[test]
    fn secrets_survive_a_restart_with_mode_0600() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::open(folder.path()).unwrap().load_or_create_secrets().unwrap();
        let second = DataFolder::open(folder.path()).unwrap().load_or_create_secrets().unwrap();
        assert_eq!(first.signing_keys, second.signing_keys);
        let mode = fs::metadata(folder.path().join("secrets.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
