//! Certificates, made by the `openssl` command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A minimal configuration of `openssl req`, in place of the machine's.
const CONFIGURATION: &str = "[req]\ndistinguished_name = name\n[name]\n";

/// A certificate authority and its certificates, in a temporary folder.
pub struct Authority {
    folder: TempDir,
}

/// Files of a certificate.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn create() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("openssl.cnf"), CONFIGURATION)?;
        let this = Self { folder };
        this.create_certificate("authority", &["-addext", "basicConstraints=critical,CA:TRUE"])?;
        Ok(this)
    }

    /// The certificate of the authority.
    pub fn certificate(&self) -> PathBuf {
        self.path("authority.crt")
    }

    /// Issues a certificate for a host, or a client, of this name.
    pub fn issue(&self, name: &str) -> Result<Certificate> {
        let alternative = format!("subjectAltName=DNS:{name}");
        let issuer = self.path("authority.crt");
        let key = self.path("authority.key");
        let arguments = ["-addext", &alternative, "-addext", "basicConstraints=critical,CA:FALSE"];
        self.create_certificate(
            name,
            &[&arguments[..], &["-CA", text(&issuer)?, "-CAkey", text(&key)?]].concat(),
        )?;
        Ok(Certificate {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
        })
    }

    fn create_certificate(&self, name: &str, arguments: &[&str]) -> Result<()> {
        let output = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-days", "2", "-config", "openssl.cnf"])
            .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-subj", &format!("/CN={name}")])
            .args(["-out", &format!("{name}.crt"), "-keyout", &format!("{name}.key")])
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .context("cannot run openssl")?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The path as text. The paths of these tests are UTF-8.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path is not text")
}
