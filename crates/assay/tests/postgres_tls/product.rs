//! The whole distributed product on a PostgreSQL that demands TLS, with everything verified.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use assay_testkit::launcher::{Instance, Launcher, Settings, databases, owners, set_addresses};
use assay_testkit::{provision_services, query_texts, random_name, services};

use crate::server::{HOST, TlsServer};

/// How long all processes may take to be ready.
const LIMIT: Duration = Duration::from_secs(60);

const DATABASE: &str = "assay";

/// The database users with connections, each as `encrypted` or `plain`.
const CONNECTIONS: &str = "SELECT DISTINCT usename || CASE WHEN ssl THEN ' encrypted' ELSE ' plain' END AS value \
                           FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE usename LIKE 'assay\\_%' \
                           AND usename <> 'assay_admin' ORDER BY 1";

#[tokio::test]
async fn every_role_works_over_verified_tls() -> Result<()> {
    let server = TlsServer::start()?;
    let folder = tempfile::tempdir()?;
    let launcher = launcher(&server, folder.path())?;
    launcher.migrate().await?;
    let mut instances = launcher.instances()?;
    instances.iter_mut().try_for_each(|instance| instance.start(&launcher))?;
    for instance in &instances {
        instance.await_ready(LIMIT).await?;
    }

    let key = run(&launcher, &["keys", "create", "--organization", "acme"]).await?;
    let url = format!("http://{}", instances.last().map(Instance::address).context("the gateway")?);
    let client = ["--url", &url, "--key", key.trim()];
    let (agents, conversations) = (example("agents.jsonl"), example("conversations.jsonl"));
    run(&launcher, &[&["import", "--wait", "--agents", &agents, &conversations], &client[..]].concat())
        .await?;
    let file = run(&launcher, &[&["export", "--kind", "axis", "--out", "-"], &client[..]].concat()).await?;
    let rows = csv::Reader::from_reader(file.as_bytes()).records().count();
    ensure!(rows == std::fs::read_to_string(&conversations)?.lines().count(), "{rows} rows: {file}");

    let connections = query_texts(&server.url(HOST, &server.verify_full()?), CONNECTIONS)?;
    let mut expected: Vec<_> = owners().iter().map(|owner| format!("{} encrypted", owner.user)).collect();
    expected.sort();
    assert_eq!(connections, expected);
    Ok(())
}

/// The settings of all roles, on a database of this server.
fn launcher(server: &TlsServer, folder: &Path) -> Result<Launcher> {
    let verified = server.verify_full()?;
    let password = random_name("password")?;
    let administrator = server.url(HOST, &verified);
    provision_services(&administrator, DATABASE, &password, &owners())?;
    let mut settings = Settings::new();
    let address = administrator
        .split_once('@')
        .context("an address")?
        .1
        .replace("/postgres?", &format!("/{DATABASE}?"));
    for database in databases() {
        let url = format!("postgres://{}:{password}@{address}", database.owner.user);
        settings.insert(database.setting.to_owned(), url);
    }
    let others = [
        ("ASSAY_BUS__URL", services::rabbit()?.to_owned()),
        ("ASSAY_BUS__NAMESPACE", random_name("tls")?),
        ("ASSAY_OBJECTS__URL", format!("file://{}", folder.join("objects").display())),
        ("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", random_name("a-secret-of-this-stack-tokens")?),
        ("ASSAY_SECURITY__SIGNING_KEYS", format!("k1:{}", random_name("a-secret-of-this-stack-keys")?)),
        ("ASSAY_TELEMETRY__METRICS_LISTEN", String::new()),
    ];
    settings.extend(others.map(|(name, value)| (name.to_owned(), value)));
    set_addresses(&mut settings)?;
    let program = env!("CARGO_BIN_EXE_assay").into();
    Ok(Launcher { program, folder: folder.to_owned(), logs: folder.to_owned(), settings })
}

async fn run(launcher: &Launcher, arguments: &[&str]) -> Result<String> {
    let output = launcher.command(arguments).output().await?;
    ensure!(output.status.success(), "assay {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn example(name: &str) -> String {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "examples"].iter().collect();
    folder.join(name).display().to_string()
}
