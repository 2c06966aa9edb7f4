//! Runs the server process and verifies that the server that answers is ours.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use diesel::{Connection as _, PgConnection, RunQueryDsl as _, sql_query};

use super::cluster::{ADMINISTRATOR, Cluster};
use crate::{
    files::end_of_log,
    identity::processes_in_folder,
    ports::free_port,
    process::{ProcessSpec, Signal},
    query::Row,
};

/// A prepared server, which can be started repeatedly on the same port and data.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    cluster: Cluster,
    port: u16,
    durable: bool,
    log: PathBuf,
}

impl PostgresServer {
    /// Finds the programs, creates the cluster in `folder` if there is none yet, and chooses a free port.
    pub(crate) fn prepare(folder: &Path, log: &Path, durable: bool) -> Result<Self> {
        let cluster = Cluster::open_or_create(folder, log).context("cannot prepare a private PostgreSQL")?;
        Ok(Self { cluster, port: free_port()?, durable, log: log.to_owned() })
    }

    /// The postmaster, in the foreground.
    pub(crate) fn process(&self) -> ProcessSpec {
        // Nothing outside its own folder: no Unix socket, no TCP but loopback.
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "unix_socket_directories=".to_owned(),
            "max_connections=300".to_owned(),
            "logging_collector=off".to_owned(),
            "log_destination=stderr".to_owned(),
            "log_line_prefix=%m [%p] %q%u@%d ".to_owned(),
        ];
        if !self.durable {
            let fast = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "wal_level=minimal"];
            settings.extend(fast.map(str::to_owned));
            settings.push("max_wal_senders=0".to_owned());
        }
        let mut spec =
            self.cluster.process("postgres", &self.log).arguments(["-D"]).arguments([&self.cluster.data]);
        for setting in settings {
            spec = spec.arguments(["-c", &setting]);
        }
        spec
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn data_folder(&self) -> &Path {
        &self.cluster.data
    }

    pub(crate) fn admin_url(&self, database: &str) -> String {
        let Self { cluster, port, .. } = self;
        format!("postgres://{ADMINISTRATOR}:{}@127.0.0.1:{port}/{database}", cluster.password)
    }

    /// `Some` once the server answers.
    ///
    /// # Errors
    /// When the server that answers works on other data than ours.
    pub(crate) fn answers(&self) -> Result<Option<()>> {
        let url = format!("{}?connect_timeout=5", self.admin_url("postgres"));
        let Ok(mut connection) = PgConnection::establish(&url) else { return Ok(None) };
        let query = sql_query("SELECT current_setting('data_directory') AS value");
        let Ok(Row { value: folder }) = query.get_result(&mut connection) else { return Ok(None) };
        ensure!(
            Path::new(&folder) == self.cluster.data,
            "the server on port {} works on {folder} instead of {}: it is not ours",
            self.port,
            self.cluster.data.display()
        );
        Ok(Some(()))
    }

    /// Whether the last start failed because the port was in use.
    pub(crate) fn found_its_port_taken(&self) -> bool {
        self.end_of_log().contains("could not bind")
    }

    /// The end of the server's log, for an error message.
    pub(crate) fn end_of_log(&self) -> String {
        end_of_log(&self.log)
    }
}

/// Sends SIGQUIT to the child processes that a killed postmaster of this data left behind: the next one refuses to start
/// while they run. True when none is left.
///
/// Call it only while no postmaster of ours runs on the data.
pub(crate) fn clear_leftovers(data: &Path) -> Result<bool> {
    let leftovers = processes_in_folder("postgres", data)?;
    for leftover in &leftovers {
        leftover.signal(Signal::SIGQUIT)?;
    }
    Ok(leftovers.is_empty())
}
