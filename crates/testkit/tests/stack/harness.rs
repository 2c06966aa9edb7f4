//! Runs the supervisor and inspects its processes and files.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use assay_testkit::{PostgresOptions, PrivatePostgres, ProcessIdentity, wait::wait_for};
use diesel::{Connection as _, PgConnection, connection::SimpleConnection as _};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

/// Time limit for the start of a stack with PostgreSQL and RabbitMQ on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Every process that has a pid file on private servers.
pub const PROCESSES: [&str; 10] = [
    "agent-registry",
    "console",
    "export",
    "export-worker",
    "gateway",
    "ingest",
    "postgres",
    "rabbitmq",
    "scoring-worker",
    "webhooks",
];

/// The folder of a stack, and how to run its supervisor.
pub struct TestStack {
    home: TempDir,
    variables: Vec<(String, String)>,
    _postgres: Option<PrivatePostgres>,
}

/// A supervisor in the foreground; killed, and the stack taken down, when dropped.
pub struct Supervisor<'a> {
    stack: &'a TestStack,
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
}

impl TestStack {
    /// A stack on private servers.
    pub fn on_private_servers() -> Result<Self> {
        let home = tempfile::Builder::new().prefix("assay-stack-test-").tempdir()?;
        // The user of PostgreSQL must be able to reach the data inside.
        fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        fs::create_dir(home.path().join("recorded"))?;
        Ok(Self { home, variables: Vec::new(), _postgres: None })
    }

    /// A stack on external servers, with an administrator without superuser rights, as on hosted servers.
    ///
    /// Not on the server that tests share: a stack sets the passwords of database users that other tests log in as. The
    /// stub never connects to the broker.
    pub fn on_external_servers() -> Result<Self> {
        let postgres = PrivatePostgres::start(&PostgresOptions::for_tests())?;
        PgConnection::establish(&postgres.url())?
            .batch_execute("CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'word'")?;
        PgConnection::establish(&postgres.url())?.batch_execute("CREATE DATABASE rented OWNER owner")?;
        let mut url = url::Url::parse(&postgres.admin_url("rented"))?;
        ensure!(url.set_username("owner").is_ok() && url.set_password(Some("word")).is_ok());
        let mut stack = Self::on_private_servers()?
            .with("ASSAY_POSTGRES_URL", url.as_str())
            .with("ASSAY_AMQP_URL", "amqp://user:password@broker.example/%2f");
        stack._postgres = Some(postgres);
        Ok(stack)
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn folder(&self) -> PathBuf {
        self.home.path().join("stack")
    }

    /// The supervisor with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay-stack"));
        command
            .args(arguments)
            .args(["--assay", env!("CARGO_BIN_EXE_assay-stand-in")])
            .env("ASSAY_STACK_DIR", self.folder())
            .env("ASSAY_GATEWAY__LISTEN", "127.0.0.1:0")
            .env("STAND_IN_FOLDER", self.home.path().join("recorded"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the supervisor until it exits by itself.
    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments).output()?)
    }

    /// Starts the stack and waits until it is ready.
    pub fn up(&self) -> Result<Supervisor<'_>> {
        self.up_with(&[])
    }

    /// As [`Self::up`], with these options.
    pub fn up_with(&self, options: &[&str]) -> Result<Supervisor<'_>> {
        let mut child = self.command(&[&["up"], options].concat()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no output")?;
        let mut supervisor = Supervisor { stack: self, child, address: String::new() };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let line = lines.recv_timeout(START_LIMIT).context("the stack does not get ready")?;
        let address = line.strip_prefix("assay is ready at ");
        supervisor.address = address.with_context(|| format!("unexpected output: {line}"))?.to_owned();
        Ok(supervisor)
    }

    /// The process id in a pid file.
    pub fn pid(&self, name: &str) -> Result<u32> {
        let file = self.folder().join(format!("pids/{name}.pid"));
        let text = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        Ok(text.trim().parse()?)
    }

    /// The names of the pid files, sorted.
    pub fn pid_files(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.folder().join("pids"))? {
            names.push(entry?.file_name().to_string_lossy().trim_end_matches(".pid").to_owned());
        }
        names.sort();
        Ok(names)
    }

    /// The settings that the stub recorded for this subcommand.
    pub fn recorded(&self, subcommand: &str) -> Result<Vec<(String, String)>> {
        read_variables(&self.home.path().join("recorded").join(subcommand))
    }

    /// The value of a setting that the stub recorded for the gateway.
    pub fn setting(&self, name: &str) -> Result<String> {
        let settings = self.recorded("gateway")?;
        let found = settings.into_iter().find(|(found, _)| found == name);
        Ok(found.with_context(|| format!("{name} is not set"))?.1)
    }

    /// Every living process of the stack: those recorded, and those with its folder in their arguments or environment.
    pub fn processes(&self) -> Result<Vec<ProcessIdentity>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder().join("processes"))? {
            let record: ProcessIdentity = fs::read_to_string(entry?.path())?.parse()?;
            found.extend(record.is_alive().then_some(record));
        }
        let folder = self.folder().to_string_lossy().into_owned();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let mentions = |file: &str| {
                let text = fs::read(entry.path().join(file)).unwrap_or_default();
                String::from_utf8_lossy(&text).contains(&folder)
            };
            if mentions("cmdline") || mentions("environ") {
                found.extend(ProcessIdentity::of(pid));
            }
        }
        Ok(found)
    }

    pub fn ensure_no_processes_left(&self) -> Result<()> {
        let left = self.processes()?;
        ensure!(left.is_empty(), "still running: {left:?}");
        let files = self.pid_files()?;
        ensure!(files.is_empty(), "pid files left: {files:?}");
        Ok(())
    }
}

impl Supervisor<'_> {
    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().cast_signed()), signal)?)
    }

    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        wait_for("the supervisor to end", limit, || Ok(self.child.try_wait()?))
    }

    /// Kills the supervisor alone.
    pub fn crash(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.signal(Signal::SIGTERM));
            drop(self.wait(Duration::from_secs(60)));
            drop(self.crash());
        }
        drop(self.stack.run(&["down"]));
    }
}

/// Kills a process of the stack and waits for its successor.
pub fn kill_and_await_restart(stack: &TestStack, name: &str) -> Result<u32> {
    let killed = stack.pid(name)?;
    kill(Pid::from_raw(killed.cast_signed()), Signal::SIGKILL)?;
    wait_for(&format!("another {name}"), Duration::from_secs(30), || {
        let pid = stack.pid(name)?;
        Ok((pid != killed && Path::new(&format!("/proc/{pid}")).exists()).then_some(pid))
    })
}

pub fn read_variables(file: &Path) -> Result<Vec<(String, String)>> {
    let text = fs::read_to_string(file).with_context(|| format!("no {}", file.display()))?;
    text.lines()
        .map(|line| match line.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => bail!("not NAME=VALUE: {line}"),
        })
        .collect()
}
