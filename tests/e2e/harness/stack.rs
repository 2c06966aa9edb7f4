//! A running stack: processes, settings and logs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_testkit::process::{Output, Process, ProcessSpec, Signal};
use tempfile::TempDir;
use tokio::process::Command;

use super::api::Api;
use super::deployment::{self, BOOTSTRAP_KEY, Deployment, Member};
use super::until;

/// The executable under test.
const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// Lines of each log shown on failure.
const LOG_LINES: usize = 80;

/// The two kinds of stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Everything in one process, on SQLite.
    Standalone,
    /// A process for every role, on PostgreSQL and RabbitMQ.
    Distributed,
}

/// A stack. Dropping it kills and reaps its processes; they die with this process, too.
pub struct Stack {
    kind: Kind,
    // Dropped before the database and the folder that they use.
    processes: BTreeMap<&'static str, Process>,
    deployment: Deployment,
    logs: PathBuf,
    home: TempDir,
    base_url: String,
}

impl Stack {
    /// Everything but the processes.
    pub fn prepare(kind: Kind, name: &str) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("assay-e2e-").tempdir()?;
        let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("e2e/{kind:?}/{name}").to_lowercase());
        if logs.exists() {
            fs::remove_dir_all(&logs)?;
        }
        fs::create_dir_all(&logs)?;
        let data = home.path().join("data");
        let deployment = match kind {
            Kind::Standalone => deployment::standalone(&data),
            Kind::Distributed => deployment::distributed(&data)?,
        };
        Ok(Self { kind, processes: BTreeMap::new(), deployment, logs, home, base_url: String::new() })
    }

    /// Starts every process that does not run, and waits until all of them are ready.
    pub async fn start(&mut self) -> Result<()> {
        if self.kind == Kind::Distributed && self.base_url.is_empty() {
            let migrated = self.assay(&["migrate"]).output().await?;
            ensure!(
                migrated.status.success(),
                "assay migrate: {}",
                String::from_utf8_lossy(&migrated.stderr)
            );
        }
        for member in self.deployment.members.clone() {
            if !self.processes.contains_key(member.name) {
                let process = self.spawn(&member)?;
                self.processes.insert(member.name, process);
            }
        }
        for index in 0..self.deployment.members.len() {
            let address = self.address_of(index).await?;
            self.await_ready(self.deployment.members[index].name, &address).await?;
            self.base_url = format!("http://{address}");
        }
        Ok(())
    }

    /// SIGKILLs the standalone, or the named processes of the distributed stack.
    pub fn kill(&mut self, names: &[&str]) {
        let everything = self.kind == Kind::Standalone;
        let doomed: Vec<_> =
            self.processes.keys().copied().filter(|name| everything || names.contains(name)).collect();
        for name in &doomed {
            self.processes[name].signal(Signal::SIGKILL);
        }
        for name in doomed {
            // Waits until it is reaped.
            self.processes.remove(name);
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sends a signal to a process.
    pub fn signal(&self, name: &str, signal: Signal) -> Result<()> {
        self.process(name)?.signal(signal);
        Ok(())
    }

    /// Exit status of a process; `None` while it runs.
    pub fn exit_status(&self, name: &str) -> Result<Option<ExitStatus>> {
        Ok(self.process(name)?.exit_status())
    }

    /// The id of a process.
    pub fn pid(&self, name: &str) -> Result<u32> {
        Ok(self.process(name)?.pid())
    }

    /// Removes an ended process; [`Self::start`] starts it again.
    pub fn forget(&mut self, name: &str) {
        self.processes.remove(name);
    }

    /// `HOST:PORT` of a process.
    pub fn address(&self, name: &str) -> Result<&str> {
        let member = self.deployment.members.iter().find(|member| member.name == name);
        member.and_then(|member| member.address.as_deref()).with_context(|| format!("{name} has no address"))
    }

    /// The names of all processes.
    pub fn names(&self) -> Vec<&'static str> {
        self.deployment.members.iter().map(|member| member.name).collect()
    }

    /// The log of a process.
    pub fn log(&self, name: &str) -> PathBuf {
        self.log_of(name)
    }

    fn process(&self, name: &str) -> Result<&Process> {
        self.processes.get(name).with_context(|| format!("{name} does not run"))
    }

    /// Restarts the gateway (or the standalone) with another setting.
    pub async fn restart_gateway_with(&mut self, setting: &str, value: &str) -> Result<()> {
        self.restart_with("gateway", &[(setting, value)]).await
    }

    /// Restarts a process (or the standalone) with other settings.
    pub async fn restart_with(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<()> {
        self.kill(&[name]);
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.deployment.settings.extend(settings);
        self.start().await
    }

    /// `http://HOST:PORT` of the public API.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The key that the stack started with.
    pub fn bootstrap_key(&self) -> &'static str {
        BOOTSTRAP_KEY
    }

    /// A folder for the scenario's own files.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// The value of a common setting; empty if unset.
    pub fn setting(&self, name: &str) -> &str {
        // The last one counts.
        let set = self.deployment.settings.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The address of the database that holds the API keys.
    pub fn registry_database_url(&self) -> String {
        match self.kind {
            Kind::Standalone => format!("sqlite:{}", self.home.path().join("data/registry.sqlite").display()),
            Kind::Distributed => self.setting("ASSAY_REGISTRY__DATABASE_URL").to_owned(),
        }
    }

    /// A client with the key that the stack started with, of the organization `default`.
    pub fn api(&self) -> Result<Api> {
        Api::new(&self.base_url, Some(BOOTSTRAP_KEY))
    }

    /// A client with this key, or without.
    pub fn api_with(&self, key: Option<&str>) -> Result<Api> {
        Api::new(&self.base_url, key)
    }

    /// A client of an organization of this name, with a new key made on the command line.
    pub async fn api_of(&self, organization: &str) -> Result<Api> {
        self.api_with(Some(&self.create_key(&["--organization", organization]).await?))
    }

    /// A new key made on the command line.
    pub async fn create_key(&self, arguments: &[&str]) -> Result<String> {
        let output = self.keys(&[&["create"], arguments].concat()).await?;
        Ok(output.trim_end().to_owned())
    }

    /// `assay keys …`: its standard output.
    pub async fn keys(&self, arguments: &[&str]) -> Result<String> {
        let output = self.registry_command("keys", arguments).await?;
        ensure!(output.status.success(), "assay keys {arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command on the registry's database, `assay COMMAND …`.
    pub async fn registry_command(&self, command: &str, arguments: &[&str]) -> Result<std::process::Output> {
        let data = self.home.path().join("data");
        let data = data.to_str().context("the folder is no text")?;
        let place: &[&str] = match self.kind {
            Kind::Standalone => &["--data-dir", data],
            Kind::Distributed => &[],
        };
        Ok(self.assay(&[&[command], arguments, place].concat()).output().await?)
    }

    /// The name and the whole log of every process.
    pub fn read_logs(&self) -> Result<Vec<(&'static str, String)>> {
        let names = self.deployment.members.iter().map(|member| member.name);
        names.map(|name| Ok((name, fs::read_to_string(self.log_of(name))?))).collect()
    }

    /// The executable with the settings of this stack.
    pub fn assay(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(ASSAY);
        command.args(arguments).current_dir(self.home.path()).stdin(Stdio::null()).kill_on_drop(true);
        for name in inherited_settings() {
            command.env_remove(name);
        }
        command.envs(self.deployment.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What all processes have logged.
    pub fn logs(&self) -> Result<String> {
        let read = |member: &Member| Ok(fs::read_to_string(self.log_of(member.name))?);
        self.deployment.members.iter().map(read).collect()
    }

    /// Prints the end of every log on standard error.
    pub fn show_logs(&self) {
        let mut output = std::io::stderr();
        for member in &self.deployment.members {
            let path = self.log_of(member.name);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
            // Best effort.
            let _ = writeln!(output, "\n--- end of {}\n{}", path.display(), end.join("\n"));
        }
    }

    fn spawn(&self, member: &Member) -> Result<Process> {
        let mut spec = ProcessSpec::new(member.name, ASSAY, Output::File(self.log_of(member.name)))
            .arguments(&member.arguments)
            .folder(self.home.path())
            .on_parent_death(Some(Signal::SIGKILL));
        for name in inherited_settings() {
            spec = spec.without_variable(name);
        }
        for (name, value) in &self.deployment.settings {
            spec = spec.variable(name, value);
        }
        Process::spawn(&spec)
    }

    /// The address of a member. The standalone gets a port from the system and prints it; restarts reuse it.
    async fn address_of(&mut self, index: usize) -> Result<String> {
        if let Some(address) = &self.deployment.members[index].address {
            return Ok(address.clone());
        }
        let name = self.deployment.members[index].name;
        let address = until("the address in the output", async || {
            self.ensure_alive(name)?;
            let log = fs::read_to_string(self.log_of(name)).unwrap_or_default();
            let line = log.lines().find_map(|line| line.strip_prefix("assay listens on http://"));
            Ok(line.map(str::to_owned))
        })
        .await?;
        let member = &mut self.deployment.members[index];
        member.arguments = deployment::standalone_arguments(&self.home.path().join("data"), &address);
        member.address = Some(address.clone());
        Ok(address)
    }

    async fn await_ready(&self, name: &str, address: &str) -> Result<()> {
        let api = Api::new(&format!("http://{address}"), None)?;
        until(&format!("readiness of {name}"), async || {
            self.ensure_alive(name)?;
            let request = api.request(reqwest::Method::GET, "/readyz").timeout(Duration::from_secs(5));
            Ok(match api.reply(request).await {
                // Ready and not degraded.
                Ok(reply) if reply.status == 200 && reply.text().contains("\"ready\"") => Some(()),
                _ => None,
            })
        })
        .await
    }

    fn ensure_alive(&self, name: &str) -> Result<()> {
        let process = self.processes.get(name).with_context(|| format!("{name} was never started"))?;
        match process.exit_status() {
            Some(status) => anyhow::bail!("{name} ended with {status}"),
            None => Ok(()),
        }
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}

/// Settings in the environment of the test, which must not reach the product.
fn inherited_settings() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("ASSAY_"))
}
