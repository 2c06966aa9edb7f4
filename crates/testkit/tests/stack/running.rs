//! A running stack: its files and settings, and the restart of dead processes.

use std::{
    collections::BTreeMap, fs, net::TcpStream, os::unix::fs::PermissionsExt as _, path::Path, time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use assay_testkit::{launcher::ROLES, wait::wait_for};
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query};

use crate::harness::{PROCESSES, TestStack, kill_and_await_restart, read_variables};

/// Whether a statement succeeds with the database URL of a setting.
fn allowed(stack: &TestStack, setting: &str, statement: &str) -> Result<bool> {
    let mut connection = PgConnection::establish(&stack.setting(setting)?)?;
    Ok(connection.batch_execute(statement).is_ok())
}

#[test]
fn every_process_has_a_pid_file_and_a_log() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let _supervisor = stack.up()?;
    ensure!(stack.pid_files()? == PROCESSES);
    for name in PROCESSES {
        ensure!(Path::new(&format!("/proc/{}", stack.pid(name)?)).exists(), "{name} runs");
        ensure!(stack.folder().join(format!("logs/{name}.log")).exists(), "{name} has a log");
    }
    let program = |name| fs::read_link(format!("/proc/{}/exe", stack.pid(name)?)).context("no such process");
    ensure!(program("rabbitmq")?.ends_with("beam.smp"));
    ensure!(program("postgres")?.ends_with("postgres"));
    Ok(())
}

#[test]
fn every_role_gets_all_settings_but_the_stacks_own() -> Result<()> {
    let stack = TestStack::on_external_servers()?
        .with("ASSAY_BOOTSTRAP_API_KEY", "a bootstrap key that the caller of the test chose");
    let supervisor = stack.up()?;
    let expected = "\
        ASSAY_BOOTSTRAP_API_KEY ASSAY_BUS__URL ASSAY_CONSOLE__LISTEN ASSAY_EXPORT_WORKER__DATABASE_URL \
        ASSAY_EXPORT_WORKER__LISTEN ASSAY_EXPORT__DATABASE_URL ASSAY_EXPORT__LISTEN ASSAY_GATEWAY__LISTEN \
        ASSAY_INGEST__DATABASE_URL ASSAY_INGEST__LISTEN ASSAY_OBJECTS__URL ASSAY_REGISTRY__DATABASE_URL \
        ASSAY_REGISTRY__LISTEN ASSAY_SCORING__DATABASE_URL ASSAY_SCORING__LISTEN \
        ASSAY_SECURITY__SERVICE_TOKEN_SECRET ASSAY_SECURITY__SIGNING_KEYS ASSAY_SERVICES__CONSOLE_URL \
        ASSAY_SERVICES__EXPORT_URL ASSAY_SERVICES__INGEST_URL ASSAY_SERVICES__REGISTRY_URL \
        ASSAY_SERVICES__SCORING_URL ASSAY_SERVICES__WEBHOOKS_URL ASSAY_WEBHOOKS__DATABASE_URL \
        ASSAY_WEBHOOKS__LISTEN";
    for role in ROLES.iter().map(|role| role.name).chain(["migrate"]) {
        let settings: BTreeMap<String, String> = stack.recorded(role)?.into_iter().collect();
        ensure!(settings.keys().eq(expected.split(' ')), "{role} has {:?}", settings.keys());
    }
    ensure!(stack.setting("ASSAY_BUS__URL")? == "amqp://user:password@broker.example/%2f");
    ensure!(stack.setting("ASSAY_OBJECTS__URL")? == format!("file://{}/objects", stack.folder().display()));
    ensure!(supervisor.address == format!("http://{}", stack.setting("ASSAY_GATEWAY__LISTEN")?));
    let ingest = format!("http://{}", stack.setting("ASSAY_INGEST__LISTEN")?);
    ensure!(stack.setting("ASSAY_SERVICES__INGEST_URL")? == ingest);
    Ok(())
}

#[test]
fn secrets_are_stable_and_private() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    drop(stack.up()?);
    let first = read_variables(&stack.folder().join("secrets"))?;
    drop(stack.up()?);
    ensure!(read_variables(&stack.folder().join("secrets"))? == first);
    for file in ["secrets", "env"] {
        let mode = fs::metadata(stack.folder().join(file))?.permissions().mode();
        ensure!(mode & 0o777 == 0o600, "{file} has mode {mode:o}");
    }
    Ok(())
}

#[test]
fn every_service_can_use_its_own_schema_only() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let _supervisor = stack.up()?;
    let own = "CREATE TABLE ingest.proof (n int); INSERT INTO ingest.proof VALUES (1)";
    ensure!(allowed(&stack, "ASSAY_INGEST__DATABASE_URL", own)?);
    for (setting, statement) in [
        ("ASSAY_SCORING__DATABASE_URL", "SELECT * FROM ingest.proof"),
        ("ASSAY_INGEST__DATABASE_URL", "CREATE TABLE registry.proof (n int)"),
        ("ASSAY_INGEST__DATABASE_URL", "CREATE TABLE public.proof (n int)"),
        ("ASSAY_INGEST__DATABASE_URL", "CREATE ROLE another"),
    ] {
        ensure!(!allowed(&stack, setting, statement)?, "{setting} may not {statement}");
    }
    Ok(())
}

#[test]
fn external_servers_are_used_and_not_supervised() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let _supervisor = stack.up()?;
    let files = stack.pid_files()?;
    ensure!(!files.contains(&"postgres".to_owned()) && !files.contains(&"rabbitmq".to_owned()), "{files:?}");
    let url = stack.setting("ASSAY_EXPORT__DATABASE_URL")?;
    ensure!(url.starts_with("postgres://assay_export:") && url.ends_with("/rented"), "{url}");
    ensure!(allowed(&stack, "ASSAY_EXPORT__DATABASE_URL", "CREATE TABLE export.proof (n int)")?);
    Ok(())
}

#[test]
fn killed_service_restarts_on_the_same_port() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let supervisor = stack.up()?;
    for name in ["gateway", "ingest", "export-worker"] {
        kill_and_await_restart(&stack, name)?;
    }
    let address = supervisor.address.trim_start_matches("http://").to_owned();
    wait_for("the gateway to listen again", Duration::from_secs(10), || Ok(TcpStream::connect(&address).ok()))
        .map(drop)
}

#[test]
fn killed_servers_restart_with_their_data() -> Result<()> {
    let stack = TestStack::on_private_servers()?;
    let _supervisor = stack.up()?;
    let own = "CREATE TABLE ingest.kept (n int); INSERT INTO ingest.kept VALUES (1)";
    ensure!(allowed(&stack, "ASSAY_INGEST__DATABASE_URL", own)?);

    kill_and_await_restart(&stack, "postgres")?;
    let url = stack.setting("ASSAY_INGEST__DATABASE_URL")?;
    let rows = wait_for("PostgreSQL to answer again", Duration::from_secs(30), || {
        let Ok(mut connection) = PgConnection::establish(&url) else { return Ok(None) };
        Ok(Some(sql_query("SELECT n FROM ingest.kept").execute(&mut connection)?))
    })?;
    ensure!(rows == 1);

    let broker = url::Url::parse(&stack.setting("ASSAY_BUS__URL")?)?;
    let port = broker.port().context("the broker has a port")?;
    kill_and_await_restart(&stack, "rabbitmq")?;
    wait_for("RabbitMQ to listen again", Duration::from_secs(60), || {
        Ok(TcpStream::connect(("127.0.0.1", port)).ok())
    })
    .map(drop)
}

#[test]
fn key_is_the_only_standard_output() -> Result<()> {
    let stack = TestStack::on_external_servers()?;
    let _supervisor = stack.up()?;
    let output = stack.run(&["key", "--organization", "acme"])?;
    ensure!(output.status.success(), "{output:?}");
    ensure!(String::from_utf8(output.stdout)? == "key-of-acme\n");
    let seen = stack.recorded("keys")?;
    let url = stack.setting("ASSAY_REGISTRY__DATABASE_URL")?;
    ensure!(seen.contains(&("ASSAY_REGISTRY__DATABASE_URL".to_owned(), url)), "{seen:?}");
    ensure!(
        !seen.iter().any(|(name, _)| name == "ASSAY_STACK_DIR" || name == "ASSAY_POSTGRES_URL"),
        "{seen:?}"
    );
    Ok(())
}
