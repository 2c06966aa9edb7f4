//! A private PostgreSQL server: its own folder, a free loopback port, our child process.

mod binaries;
mod cluster;
mod server;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};

pub(crate) use self::server::{PostgresServer, clear_leftovers};
use crate::{
    identity::processes_in_folder,
    ports::MAX_PORTS_TRIED,
    process::{Process, Signal},
    scratch::{Location, ScratchFolder},
    wait::wait_for,
};

/// Path of a client program, from the newest installed version (the one that tests run).
///
/// # Errors
/// When none is installed.
pub fn client_program(name: &str) -> Result<PathBuf> {
    binaries::PostgresBinaries::newest_installed().map(|binaries| binaries.program(name))
}

/// Time limit from the start of the server to its first answer, including crash recovery.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(60);

/// How long the server may take to finish its last checkpoint.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// How to run a [`PrivatePostgres`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Where the data is kept.
    pub location: Location,
    /// Whether a commit survives a crash of the machine. Without it everything is several times faster.
    pub durable: bool,
    /// Whether the kernel ends the server when this process dies. Otherwise only `stop` and `Drop` do.
    pub dies_with_us: bool,
}

impl PostgresOptions {
    /// A fast server for tests that leaves nothing behind.
    pub fn for_tests() -> Self {
        Self { location: Location::Temporary, durable: false, dies_with_us: true }
    }

    /// A durable server in a persistent folder.
    pub fn durable_in(folder: impl Into<PathBuf>) -> Self {
        Self { location: Location::Folder(folder.into()), durable: true, dies_with_us: false }
    }
}

/// A running private PostgreSQL server. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct PrivatePostgres {
    // Dropped in this order: the server must end before its folder is removed.
    process: Process,
    server: PostgresServer,
    _scratch: Option<ScratchFolder>,
}

impl PrivatePostgres {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When PostgreSQL is not available, or the server does not start; the message holds the end of its log.
    pub fn start(options: &PostgresOptions) -> Result<Self> {
        let (folder, scratch) = options.location.open("assay-postgres-")?;
        let log = folder.join("postgres.log");
        let mut ports_tried = 0;
        loop {
            ports_tried += 1;
            let server = PostgresServer::prepare(&folder, &log, options.durable)?;
            let on_parent_death = options.dies_with_us.then_some(Signal::SIGQUIT);
            let process = Process::spawn(&server.process().on_parent_death(on_parent_death))?;
            match wait_until_ready(&server, &process) {
                Ok(()) => return Ok(Self { process, server, _scratch: scratch }),
                Err(_) if ports_tried < MAX_PORTS_TRIED && server.found_its_port_taken() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The administrator's URL of the maintenance database `postgres`.
    pub fn url(&self) -> String {
        self.admin_url("postgres")
    }

    /// The administrator's URL of a database, which need not exist yet.
    pub fn admin_url(&self, database: &str) -> String {
        self.server.admin_url(database)
    }

    /// The process id of the postmaster, our child.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The folder that holds the database cluster.
    pub fn data_folder(&self) -> &std::path::Path {
        self.server.data_folder()
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Sends a signal to every process of the server at once.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn signal_all(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal);
        processes_in_folder("postgres", self.data_folder())?.iter().try_for_each(|one| one.signal(signal))
    }

    /// Kills every process of the server at once, as a power cut does, and waits until they are gone. A server that is
    /// started in the same folder recovers what was committed.
    ///
    /// # Errors
    /// When `/proc` cannot be read, or a process does not go.
    pub fn kill(self) -> Result<()> {
        wait_for("the killed PostgreSQL to be gone", STOP_LIMIT, || {
            self.signal_all(Signal::SIGKILL)?;
            let is_reaped = self.process.exit_status().is_some();
            let left = processes_in_folder("postgres", self.data_folder())?;
            Ok((is_reaped && left.is_empty()).then_some(()))
        })
    }

    /// Whether the postmaster still runs.
    pub fn is_running(&self) -> bool {
        self.process.exit_status().is_none()
    }

    /// Stops the server in an orderly way: it ends its sessions, writes a checkpoint and exits.
    pub fn stop(self) {
        self.process.stop(Signal::SIGINT, STOP_LIMIT);
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        // "Immediate shutdown": as quick as a kill, but it also ends the server's other processes and frees its shared
        // memory. The next start recovers what was committed.
        self.process.stop(Signal::SIGQUIT, Duration::from_secs(5));
    }
}

fn wait_until_ready(server: &PostgresServer, process: &Process) -> Result<()> {
    let what = format!("PostgreSQL to answer on port {}", server.port());
    wait_for(&what, START_LIMIT, || {
        if let Some(status) = process.exit_status() {
            bail!("PostgreSQL ended with {status} instead of starting");
        }
        server.answers()
    })
    .with_context(|| server.end_of_log())
}
