//! The roles of Assay as processes: one table of their settings and databases, and one way to start them, for `make stack`,
//! the end-to-end tests, fault injection and the benchmarks.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use assay_platform::runtime::blocking;

use crate::{
    database_users::SchemaOwner,
    http,
    memory_limit::MemoryLimit,
    ports::free_port,
    process::{Output, Process, ProcessSpec, Signal},
};

/// A role that runs as its own process: its subcommand and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its subcommand; names its log, too.
    pub name: &'static str,
    /// The setting of the address on which it listens.
    pub listen: &'static str,
    /// The setting with its URL for the roles that call it, if any.
    pub url: Option<&'static str>,
    /// Its database, if it has one.
    pub database: Option<RoleDatabase>,
}

/// The database of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleDatabase {
    /// The setting of its URL.
    pub setting: &'static str,
    /// The database user, and the schema that it owns.
    pub owner: SchemaOwner,
}

/// The roles in the order in which they start; the public one is the last.
pub const ROLES: [Role; 8] = [
    Role {
        name: "agent-registry",
        listen: "ASSAY_REGISTRY__LISTEN",
        url: Some("ASSAY_SERVICES__REGISTRY_URL"),
        database: database("ASSAY_REGISTRY__DATABASE_URL", "assay_registry", "registry"),
    },
    Role {
        name: "ingest",
        listen: "ASSAY_INGEST__LISTEN",
        url: Some("ASSAY_SERVICES__INGEST_URL"),
        database: database("ASSAY_INGEST__DATABASE_URL", "assay_ingest", "ingest"),
    },
    Role {
        name: "scoring-worker",
        listen: "ASSAY_SCORING__LISTEN",
        url: Some("ASSAY_SERVICES__SCORING_URL"),
        database: database("ASSAY_SCORING__DATABASE_URL", "assay_scoring", "scoring"),
    },
    Role {
        name: "export",
        listen: "ASSAY_EXPORT__LISTEN",
        url: Some("ASSAY_SERVICES__EXPORT_URL"),
        database: database("ASSAY_EXPORT__DATABASE_URL", "assay_export", "export"),
    },
    Role {
        name: "export-worker",
        listen: "ASSAY_EXPORT_WORKER__LISTEN",
        url: None,
        // The schema of `export`.
        database: database("ASSAY_EXPORT_WORKER__DATABASE_URL", "assay_export", "export"),
    },
    Role {
        name: "webhooks",
        listen: "ASSAY_WEBHOOKS__LISTEN",
        url: Some("ASSAY_SERVICES__WEBHOOKS_URL"),
        database: database("ASSAY_WEBHOOKS__DATABASE_URL", "assay_webhooks", "webhooks"),
    },
    Role {
        name: "console",
        listen: "ASSAY_CONSOLE__LISTEN",
        url: Some("ASSAY_SERVICES__CONSOLE_URL"),
        database: None,
    },
    Role { name: GATEWAY, listen: "ASSAY_GATEWAY__LISTEN", url: None, database: None },
];

/// The public role.
pub const GATEWAY: &str = "gateway";

const fn database(setting: &'static str, user: &'static str, schema: &'static str) -> Option<RoleDatabase> {
    Some(RoleDatabase { setting, owner: SchemaOwner { user, schema } })
}

/// The databases of all roles. Two roles share a schema.
pub fn databases() -> impl Iterator<Item = RoleDatabase> {
    ROLES.iter().filter_map(|role| role.database)
}

/// The owners of all schemas, each once.
pub fn owners() -> Vec<SchemaOwner> {
    let mut owners: Vec<_> = databases().map(|database| database.owner).collect();
    // The two roles with one schema follow each other in `ROLES`.
    owners.dedup();
    owners
}

/// Settings of the executable as environment variables.
pub type Settings = BTreeMap<String, String>;

/// Gives every role a free loopback port: sets the settings of the address and of the URL for other roles.
///
/// # Errors
/// When there is no free port.
pub fn set_addresses(settings: &mut Settings) -> Result<()> {
    for role in ROLES {
        let address = format!("127.0.0.1:{}", free_port()?);
        if let Some(url) = role.url {
            settings.insert(url.to_owned(), format!("http://{address}"));
        }
        settings.insert(role.listen.to_owned(), address);
    }
    Ok(())
}

/// Starts the executable with the same settings for all processes; the settings in our own environment do not reach it.
#[derive(Clone)]
pub struct Launcher {
    pub program: PathBuf,
    pub folder: PathBuf,
    /// Where each process has its log.
    pub logs: PathBuf,
    /// The settings of all processes.
    pub settings: Settings,
}

impl Launcher {
    /// The value of a setting; empty if it is not set.
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// A process for every role, on the addresses in the settings.
    ///
    /// # Errors
    /// When a role has no address: see [`set_addresses`].
    pub fn instances(&self) -> Result<Vec<Instance>> {
        let instance = |role: &Role| {
            let address = self.settings.get(role.listen);
            let address = address.with_context(|| format!("{} has no address", role.name))?;
            Ok(Instance::new(role.name, role.name, address, [role.name.to_owned()]))
        };
        ROLES.iter().map(instance).collect()
    }

    /// A command of the executable; dropping the handle of its process kills it.
    pub fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null()).kill_on_drop(true);
        for name in inherited_settings() {
            command.env_remove(name);
        }
        command.envs(&self.settings);
        command
    }

    /// Runs `assay migrate`.
    ///
    /// # Errors
    /// When it fails, with its standard error.
    pub async fn migrate(&self) -> Result<()> {
        let output = self.command(&["migrate"]).output().await?;
        ensure!(output.status.success(), "assay migrate: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// One process, running or not. Dropping it kills and reaps the process; it dies with this process, too.
pub struct Instance {
    role: &'static str,
    name: String,
    address: String,
    arguments: Vec<String>,
    variables: Settings,
    process: Option<Process>,
    // Dropped after the process in it.
    memory_limit: Option<MemoryLimit>,
}

impl Instance {
    /// A process of a role that listens on `address`; `name` names its log.
    pub fn new(
        role: &'static str,
        name: impl Into<String>,
        address: impl Into<String>,
        arguments: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            role,
            name: name.into(),
            address: address.into(),
            arguments: arguments.into_iter().collect(),
            variables: Settings::new(),
            process: None,
            memory_limit: None,
        }
    }

    /// A process with all roles in it (`standalone`), on a free port, with its data in this folder.
    ///
    /// # Errors
    /// When there is no free port.
    pub fn standalone(data: &Path) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let data = data.display().to_string();
        let arguments = ["standalone", "--listen", &address, "--data-dir", &data].map(str::to_owned);
        Ok(Self::new("standalone", "standalone", address, arguments))
    }

    /// Adds settings for this process only.
    #[must_use]
    pub fn variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(variables);
        self
    }

    /// Limits the memory of the processes that are started from now on.
    pub fn limit_memory(&mut self, limit: MemoryLimit) {
        self.memory_limit = Some(limit);
    }

    pub fn memory_limit(&self) -> Option<&MemoryLimit> {
        self.memory_limit.as_ref()
    }

    /// Its role, or `standalone`.
    pub fn role(&self) -> &'static str {
        self.role
    }

    /// The name of its log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// How it ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.process.as_ref().and_then(Process::exit_status)
    }

    /// Starts it, unless it is started.
    ///
    /// # Errors
    /// When the executable cannot be run.
    pub fn start(&mut self, launcher: &Launcher) -> Result<()> {
        if self.process.is_some() {
            return Ok(());
        }
        let log = Output::File(launcher.log(&self.name));
        let mut spec = match &self.memory_limit {
            None => ProcessSpec::new(&self.name, &launcher.program, log),
            // The shell enters the cgroup of the limit, then becomes the program.
            Some(limit) => ProcessSpec::new(&self.name, "/bin/sh", log)
                .arguments(["-c", r#"echo $$ > "$0" && exec "$@""#])
                .arguments([limit.join_file(), launcher.program.clone()]),
        };
        spec =
            spec.arguments(&self.arguments).folder(&launcher.folder).on_parent_death(Some(Signal::SIGKILL));
        for name in inherited_settings() {
            spec = spec.without_variable(name);
        }
        for (name, value) in launcher.settings.iter().chain(&self.variables) {
            spec = spec.variable(name, value);
        }
        self.process = Some(Process::spawn(&spec)?);
        Ok(())
    }

    pub fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            process.signal(signal);
        }
    }

    /// SIGKILL; returns when the process is reaped.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// SIGTERM.
    ///
    /// # Errors
    /// Unless the process exits with success within `limit`.
    pub async fn stop(&mut self, limit: Duration) -> Result<()> {
        let Some(process) = self.process.take() else { return Ok(()) };
        let status = blocking(move || {
            process.signal(Signal::SIGTERM);
            process.wait(limit)
        });
        match status.await? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("{} ended after SIGTERM with {status}", self.name),
            None => bail!("{} did not stop within {} s", self.name, limit.as_secs()),
        }
    }

    /// Waits until it is ready and not degraded.
    ///
    /// # Errors
    /// When it ended, or is not ready in time.
    pub async fn await_ready(&self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        let address = self.address.parse()?;
        loop {
            self.ensure_not_exited()?;
            let reply = blocking(move || http::get(address, "/readyz")).await?;
            if reply.is_some_and(|(status, body)| status == 200 && body.contains("\"ready\"")) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{} was not ready within {} s", self.name, limit.as_secs());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Fails when the process exited by itself.
    ///
    /// # Errors
    /// With its exit status.
    pub fn ensure_not_exited(&self) -> Result<()> {
        match self.exit_status() {
            Some(status) => bail!("{} ended by itself with {status}", self.name),
            None => Ok(()),
        }
    }
}

/// The settings in our environment, which must not reach the executable under test.
fn inherited_settings() -> impl Iterator<Item = OsString> {
    env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("ASSAY_"))
}
