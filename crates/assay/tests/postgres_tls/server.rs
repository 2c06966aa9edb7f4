//! A private PostgreSQL that demands TLS: its certificate is for `localhost`, and it listens on 127.0.0.1.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use anyhow::{Context as _, Result};
use assay_testkit::{PostgresOptions, PrivatePostgres};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};

use crate::authority::{Authority, text};

/// The name in its certificate.
pub const HOST: &str = "localhost";

/// Another name of the same address, which is not in the certificate.
pub const OTHER_HOST: &str = "127.0.0.1";

/// A server that answers over TLS only.
pub struct TlsServer {
    postgres: PrivatePostgres,
    authority: Authority,
}

impl TlsServer {
    pub fn start() -> Result<Self> {
        Self::start_with("hostssl all all 127.0.0.1/32 scram-sha-256")
    }

    /// Demands certificates of clients as well.
    pub fn start_for_certified_clients() -> Result<Self> {
        Self::start_with("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca")
    }

    fn start_with(rule: &str) -> Result<Self> {
        let this = Self {
            postgres: PrivatePostgres::start(&PostgresOptions::for_tests())?,
            authority: Authority::create()?,
        };
        let mut administrator = PgConnection::establish(&this.postgres.url())?;
        let issued = this.authority.issue(HOST)?;
        let data = this.postgres.data_folder();
        install(&issued.certificate, &data.join("server.crt"))?;
        install(&issued.key, &data.join("server.key"))?;
        install(&this.authority.certificate(), &data.join("clients.crt"))?;
        fs::write(data.join("pg_hba.conf"), format!("{rule}\n"))?;
        for statement in [
            "ALTER SYSTEM SET ssl_ca_file = 'clients.crt'",
            "ALTER SYSTEM SET ssl = on",
            "SELECT pg_reload_conf()",
        ] {
            administrator.batch_execute(statement)?;
        }
        this.await_rule(&mut administrator)?;
        Ok(this)
    }

    /// Reloading is asynchronous: waits until plain text is refused.
    fn await_rule(&self, administrator: &mut PgConnection) -> Result<()> {
        let plain = format!("{}?sslmode=disable", self.postgres.url());
        assay_testkit::wait::wait_for("plain text to be refused", std::time::Duration::from_secs(20), || {
            administrator.batch_execute("SELECT 1")?;
            Ok(PgConnection::establish(&plain).is_err().then_some(()))
        })
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The administrator's address, with this host and these parameters.
    pub fn url(&self, host: &str, parameters: &str) -> String {
        format!("{}?{parameters}", self.postgres.url().replace("@127.0.0.1:", &format!("@{host}:")))
    }

    /// The parameters that verify certificate and host by the server's own authority.
    pub fn verify_full(&self) -> Result<String> {
        verify_full(&self.authority.certificate())
    }

    /// The password in [`Self::url`].
    pub fn password(&self) -> Result<String> {
        let url = self.postgres.url();
        let credentials =
            url.split_once("://").and_then(|(_, rest)| rest.split_once('@')).context("a user")?.0;
        Ok(credentials.split_once(':').context("a password")?.1.to_owned())
    }
}

/// The parameters that verify certificate and host by the authority in a file.
pub fn verify_full(file: &Path) -> Result<String> {
    Ok(format!("sslmode=verify-full&sslrootcert={}", text(file)?))
}

/// Copies a file for the server's account, which alone may read it.
fn install(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)?;
    fs::set_permissions(to, Permissions::from_mode(0o600))?;
    let owner = fs::metadata(to.parent().context("a folder")?)?;
    Ok(chown(to, Some(owner.uid()), Some(owner.gid()))?)
}
