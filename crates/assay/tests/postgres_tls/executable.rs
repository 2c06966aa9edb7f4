//! Certificate errors of the executable, and recovery from them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::Result;
use assay_testkit::launcher::{Instance, Launcher, Settings, databases};
use assay_testkit::{eventually, free_port};

use crate::authority::{Authority, text};
use crate::server::{HOST, TlsServer, verify_full};

/// The executable under test.
const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// How long a process may take to be ready.
const LIMIT: Duration = Duration::from_secs(30);

/// `assay migrate` with every database at `url`.
fn migrate(url: &str, variables: &[(&str, &str)]) -> Result<Output> {
    let urls = databases().map(|database| (database.setting, url));
    let variables = urls.chain(variables.iter().copied());
    Ok(Command::new(ASSAY).arg("migrate").env_remove("SSL_CERT_FILE").envs(variables).output()?)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn migrate_names_the_cause_but_not_the_password() -> Result<()> {
    let (server, other) = (TlsServer::start()?, Authority::create()?);
    let output = migrate(&server.url(HOST, &verify_full(&other.certificate())?), &[])?;
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("certificate verify failed"), "{}", errors(&output));
    assert!(!errors(&output).contains(&server.password()?), "{}", errors(&output));
    Ok(())
}

#[test]
fn unreadable_address_is_reported_without_the_password() -> Result<()> {
    let output = migrate("postgres://assay:50%secret@localhost/assay?sslmode=require", &[])?;
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("invalid percent-encoded token"), "{}", errors(&output));
    assert!(!errors(&output).contains("50%secret"), "{}", errors(&output));
    Ok(())
}

#[test]
fn system_roots_are_those_of_ssl_cert_file() -> Result<()> {
    let server = TlsServer::start()?;
    let url = server.url(HOST, "sslmode=verify-full&sslrootcert=system");
    let output = migrate(&url, &[])?;
    assert!(errors(&output).contains("certificate verify failed"), "{}", errors(&output));
    let roots = server.authority().certificate();
    let output = migrate(&url, &[("SSL_CERT_FILE", text(&roots)?)])?;
    assert!(output.status.success(), "{}", errors(&output));
    Ok(())
}

#[tokio::test]
async fn wrong_authority_is_logged_once_and_can_be_repaired() -> Result<()> {
    let (server, other) = (TlsServer::start()?, Authority::create()?);
    let folder = tempfile::tempdir()?;
    let roots = folder.path().join("ca.crt");
    fs::copy(other.certificate(), &roots)?;
    let (launcher, mut registry) = registry(&server.url(HOST, &verify_full(&roots)?), folder.path())?;
    registry.start(&launcher)?;
    let log = || fs::read_to_string(launcher.log("agent-registry")).unwrap_or_default();
    eventually("more attempts", || async { Ok(log().matches("still no connection").count() > 2) }).await?;
    assert!(registry.exit_status().is_none(), "{}", log());
    assert_eq!(log().matches("cannot connect to the database").count(), 1, "{}", log());
    assert_eq!(log().matches("certificate verify failed").count(), 1, "{}", log());
    assert!(!log().contains(&server.password()?), "{}", log());

    // As when Kubernetes replaces the file: without a restart.
    fs::copy(server.authority().certificate(), &roots)?;
    eventually("a connection", || async { Ok(log().contains("connected to the database again")) }).await?;
    registry.stop(LIMIT).await
}

/// An agent-registry that is not started yet.
fn registry(url: &str, folder: &Path) -> Result<(Launcher, Instance)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let settings = [
        ("ASSAY_REGISTRY__LISTEN", address.as_str()),
        ("ASSAY_REGISTRY__DATABASE_URL", url),
        ("ASSAY_BUS__URL", "amqp://127.0.0.1:1"),
        ("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", "a-secret-between-the-services-of-this-test"),
        ("ASSAY_TELEMETRY__METRICS_LISTEN", ""),
        ("ASSAY_TELEMETRY__FILTER", "info,assay_platform::db=debug"),
    ];
    let settings: Settings =
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    let launcher =
        Launcher { program: ASSAY.into(), folder: folder.to_owned(), logs: folder.to_owned(), settings };
    let arguments = ["agent-registry".to_owned()];
    Ok((launcher, Instance::new("agent-registry", "agent-registry", address, arguments)))
}
