//! Guarantees of a private PostgreSQL server.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Result, ensure};
use assay_testkit::{
    Location, PostgresOptions, PrivatePostgres, ProcessIdentity, execute, processes_in_folder, query_texts,
    wait::wait_for,
};
use diesel::{Connection as _, PgConnection};

fn setting(url: &str, name: &str) -> Result<String> {
    Ok(query_texts(url, &format!("SELECT current_setting('{name}') AS value"))?.remove(0))
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn server_is_our_child_on_our_data() -> Result<()> {
    let server = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    let data = setting(&server.url(), "data_directory")?;
    ensure!(Path::new(&data) == server.data_folder());
    let postmaster = fs::read_to_string(server.data_folder().join("postmaster.pid"))?;
    ensure!(postmaster.lines().next() == Some(server.pid().to_string().as_str()));
    Ok(())
}

#[test]
fn server_starts_with_the_default_port_in_use() -> Result<()> {
    // The bind fails if a server uses the port already, which serves the test as well.
    let neighbour = TcpListener::bind((Ipv4Addr::LOCALHOST, 5432));
    let server = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    let port = setting(&server.url(), "port")?;
    drop(neighbour);
    ensure!(port != "5432");
    ensure!(server.url().contains(&format!(":{port}/")));
    Ok(())
}

#[test]
fn two_servers_run_side_by_side() -> Result<()> {
    let first = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    let second = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    ensure!(setting(&first.url(), "data_directory")? != setting(&second.url(), "data_directory")?);
    Ok(())
}

#[test]
fn connection_needs_the_password() -> Result<()> {
    let server = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    let mut url = url::Url::parse(&server.url())?;
    ensure!(url.set_password(Some("guess")).is_ok());
    let refusal = PgConnection::establish(url.as_str()).err().map(|error| error.to_string());
    ensure!(refusal.is_some_and(|text| text.contains("password authentication failed")));
    Ok(())
}

#[test]
fn durability_is_on_for_the_stack_and_off_for_tests() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (options, expected) in
        [(PostgresOptions::for_tests(), "off"), (PostgresOptions::durable_in(folder.path()), "on")]
    {
        let server = PrivatePostgres::start(&options)?;
        for name in ["fsync", "synchronous_commit", "full_page_writes"] {
            ensure!(setting(&server.url(), name)? == expected, "{name} with {options:?}");
        }
    }
    Ok(())
}

#[test]
fn dropped_server_leaves_no_process_and_no_folder() -> Result<()> {
    let server = PrivatePostgres::start(&PostgresOptions::for_tests())?;
    let (pid, data) = (server.pid(), server.data_folder().to_owned());
    drop(server);
    ensure!(!exists(pid));
    ensure!(!data.exists());
    Ok(())
}

#[test]
fn persistent_data_is_found_by_the_next_server() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = PostgresOptions::durable_in(folder.path().join("postgres"));
    let first = PrivatePostgres::start(&options)?;
    execute(&first.url(), "CREATE TABLE kept (word text); INSERT INTO kept VALUES ('kept')")?;
    first.stop();
    let second = PrivatePostgres::start(&options)?;
    ensure!(query_texts(&second.url(), "SELECT word AS value FROM kept")? == ["kept"]);
    Ok(())
}

/// The folder of a stack below `/root` cannot be reached by the user under which the server runs.
#[test]
fn data_is_stored_elsewhere_if_the_folder_is_unreachable() -> Result<()> {
    let closed = tempfile::tempdir()?;
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700))?;
    let folder = closed.path().join("postgres");
    let options = PostgresOptions::durable_in(&folder);
    let server = PrivatePostgres::start(&options)?;
    let data = server.data_folder().to_owned();
    server.stop();
    ensure!(folder.join("data").canonicalize()? == data);
    let again = PrivatePostgres::start(&options)?;
    ensure!(again.data_folder() == data);
    drop(again);
    if !data.starts_with(closed.path()) {
        // Only as root: a plain user's server can reach the user's folders.
        fs::remove_dir_all(data.parent().unwrap_or(&data))?;
    }
    Ok(())
}

#[test]
fn second_server_on_the_same_data_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options =
        PostgresOptions { location: Location::Folder(folder.path().into()), ..PostgresOptions::for_tests() };
    let _first = PrivatePostgres::start(&options)?;
    let refusal = PrivatePostgres::start(&options).err().map(|error| format!("{error:#}"));
    ensure!(refusal.is_some_and(|text| text.contains("postmaster.pid")));
    Ok(())
}

/// The runner represents any test process: it starts servers with the same options.
#[test]
fn killed_process_leaves_no_server_and_no_folder() -> Result<()> {
    let mut runner = Command::new(env!("CARGO_BIN_EXE_assay-test-services"))
        .args(["--postgres", "--", "sh", "-c", "echo \"$ASSAY_TEST_POSTGRES_URL\"; exec sleep 600"])
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let mut url = String::new();
    let output = runner.stdout.take().ok_or_else(|| anyhow::anyhow!("no output"))?;
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut url)?;
    let data = setting(url.trim(), "data_directory")?;
    let processes: Vec<ProcessIdentity> = processes_in_folder("postgres", Path::new(&data))?;
    ensure!(processes.len() > 1, "the server and its helpers are found by their folder");
    runner.kill()?;
    runner.wait()?;
    wait_for("the server and its folder to go", Duration::from_secs(20), || {
        let gone = !processes.iter().any(ProcessIdentity::is_alive) && !Path::new(&data).exists();
        Ok(gone.then_some(()))
    })
}
