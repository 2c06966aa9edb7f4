//! The cluster under test: processes, servers, and proxies on all links between them.

mod backends;
mod clock;
mod links;
mod settings;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_testkit::launcher::{Instance, Launcher, owners};
use assay_testkit::process::Signal;
use assay_testkit::{SmallDisk, query_texts};
use tempfile::TempDir;
use tokio::process::Command;

pub use self::backends::Backends;
pub use self::links::{Link, Links, Target};
pub use self::settings::KEY;

/// The executable under test.
const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// Size of the disk with the databases, in megabytes.
const DATA_DISK_MB: u32 = 900;
/// Size of the disk with the files of all exports of a run, in megabytes.
const OBJECTS_DISK_MB: u32 = 3_000;

/// Time limit for every start, stop and recovery of processes.
pub const RECOVERY_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One process on SQLite.
    Standalone,
    /// Several processes of every role, on PostgreSQL and RabbitMQ.
    Distributed { replicas: usize },
}

/// A running cluster. Dropping it kills all its processes.
pub struct Cluster {
    // Drop order: processes before the servers and disks they use.
    pub instances: Vec<Instance>,
    pub links: Links,
    pub backends: Option<Backends>,
    pub objects: SmallDisk,
    pub data: SmallDisk,
    launcher: Launcher,
    home: TempDir,
}

impl Cluster {
    /// Starts everything and waits until it is ready.
    pub async fn start(kind: Kind, logs: &Path) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("assay-chaos-").tempdir()?;
        let (data, objects) = (
            SmallDisk::at(&home.path().join("data"), DATA_DISK_MB)?,
            SmallDisk::at(&home.path().join("objects"), OBJECTS_DISK_MB)?,
        );
        let backends = match kind {
            Kind::Standalone => None,
            Kind::Distributed { .. } => Some(Backends::start(home.path(), &data)?),
        };
        let (links, instances) = match (&backends, kind) {
            (Some(backends), Kind::Distributed { replicas }) => {
                links::distributed(backends, replicas).await?
            }
            _ => links::standalone(data.folder())?,
        };
        let with_clock = |instance: Instance| {
            let clock = clock::variables(home.path(), instance.role());
            instance.variables(clock)
        };
        let instances = instances.into_iter().map(with_clock).collect();
        let launcher = Launcher {
            program: ASSAY.into(),
            folder: home.path().to_owned(),
            logs: logs.to_owned(),
            settings: settings::write(home.path(), objects.folder())?,
        };
        let mut cluster = Self { instances, links, backends, objects, data, launcher, home };
        if cluster.backends.is_some() {
            cluster.operator().migrate().await?;
        }
        cluster.start_missing()?;
        cluster.await_ready().await?;
        Ok(cluster)
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.links.public())
    }

    /// Ends every fault: network, disks, clocks, paused and dead processes.
    pub async fn heal(&mut self) -> Result<()> {
        self.links.heal();
        self.objects.free()?;
        self.data.free()?;
        for instance in &self.instances {
            instance.signal(Signal::SIGCONT);
            clock::set(self.home.path(), instance.role(), 0)?;
        }
        if let Some(backends) = &mut self.backends {
            backends.heal()?;
            self.links.retarget(backends);
        }
        // A process that exited by itself is an error; those that a fault killed do not count.
        for instance in &mut self.instances {
            instance.ensure_not_exited()?;
        }
        self.start_missing()?;
        self.await_ready().await
    }

    /// Starts every process that does not run.
    pub fn start_missing(&mut self) -> Result<()> {
        self.instances.iter_mut().try_for_each(|instance| instance.start(&self.launcher))
    }

    /// The running instances of a role.
    pub fn of_role(&mut self, role: &str) -> Vec<&mut Instance> {
        self.instances.iter_mut().filter(|instance| instance.role() == role).collect()
    }

    /// Sets the clock offset of a role, in seconds.
    pub fn step_clock(&self, role: &str, seconds: i64) -> Result<()> {
        clock::set(self.home.path(), role, seconds)
    }

    /// Whether clock steps are supported on this machine.
    pub fn has_clocks(&self) -> bool {
        clock::library().is_some()
    }

    /// The URL of a service's database, for checks.
    pub fn database(&self, schema: &str) -> Result<String> {
        match &self.backends {
            Some(backends) => {
                let owner = owners().into_iter().find(|owner| owner.schema == schema);
                let url = backends.database(owner.context("no such schema")?)?;
                Ok(format!("{url}?options=-csearch_path%3D{schema}"))
            }
            None => Ok(format!("sqlite:{}", self.data.folder().join(format!("{schema}.sqlite")).display())),
        }
    }

    /// The number of rows of a table in a service's database, `FROM` the condition on.
    pub fn count(&self, schema: &str, from: &str) -> Result<u64> {
        let query = format!("SELECT CAST(count(*) AS text) AS value FROM {from}");
        Ok(query_texts(&self.database(schema)?, &query)?.first().context("no count")?.parse()?)
    }

    /// The executable with the settings of this cluster, for operator commands.
    pub fn assay(&self, arguments: &[&str]) -> Command {
        self.operator().command(arguments)
    }

    /// A launcher for operator commands, which reach the servers without proxies.
    fn operator(&self) -> Launcher {
        let mut launcher = self.launcher.clone();
        launcher.settings.extend(self.backends.iter().flat_map(Backends::settings));
        launcher
    }

    /// Waits until every process is ready.
    pub async fn await_ready(&mut self) -> Result<()> {
        for instance in &self.instances {
            instance.await_ready(RECOVERY_LIMIT).await?;
        }
        Ok(())
    }

    /// The tails of all logs, for a failed run.
    pub fn log_tails(&self) -> Result<String> {
        let mut text = String::new();
        for entry in fs::read_dir(&self.launcher.logs).context("cannot list the logs")? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let log = fs::read_to_string(&path)?;
                // Readiness polls are noise.
                let lines: Vec<&str> = log.lines().filter(|line| !line.contains("path=/readyz")).collect();
                let end = lines[lines.len().saturating_sub(12)..].join("\n");
                text.push_str(&format!("\n--- end of {}\n{end}\n", path.display()));
            }
        }
        Ok(text)
    }
}
