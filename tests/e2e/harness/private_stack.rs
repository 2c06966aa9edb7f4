//! A stack with its processes, which a scenario may start, stop and restart with other settings.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, ensure};
use assay_testkit::launcher::{Instance, Launcher, Settings, databases, owners, set_addresses};
use assay_testkit::process::Signal;
use assay_testkit::{MemoryLimit, Template, TestDatabase, memory_limit_of_manifest, random_name, services};
use tempfile::TempDir;

use super::WAIT_LIMIT;
use super::stack::{Kind, Stack};

/// The executable under test.
const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// The key that every stack starts with, of the organization `default`.
const BOOTSTRAP_KEY: &str = "bootstrap-key-of-the-end-to-end-tests";

/// Memory limit of the standalone, which has no manifest and all roles, in bytes.
const STANDALONE_MEMORY: u64 = 1024 * 1024 * 1024;

/// Lines of each log shown on failure.
const LOG_LINES: usize = 80;

/// Settings of every stack: short timeouts and intervals, so that tests can wait for them.
const COMMON: [(&str, &str); 9] = [
    ("ASSAY_BOOTSTRAP_API_KEY", BOOTSTRAP_KEY),
    ("ASSAY_GATEWAY__KEY_CACHE_SECONDS", "1"),
    ("ASSAY_GATEWAY__BODY_DEADLINE_SECONDS", "3"),
    ("ASSAY_EXPORT_WORKER__LEASE_MILLISECONDS", "5000"),
    ("ASSAY_SCORING__SUBSCRIBERS_POLL_INTERVAL_MILLISECONDS", "200"),
    // Webhook receivers of tests listen on loopback; every other private address is still refused.
    ("ASSAY_WEBHOOKS__ALLOW_HTTP", "true"),
    ("ASSAY_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("ASSAY_WEBHOOKS__RETRY_SCHEDULE_SECONDS", "0,1,1,2,2,3,3,5,5,5"),
    ("ASSAY_TELEMETRY__FILTER", "info,actix_server=warn"),
];

/// A stack used by one scenario, as the organization `default`. Dropping it kills its processes; they die with this
/// process, too.
pub struct PrivateStack {
    // Dropped before the database and the folder that they use.
    instances: Vec<Instance>,
    stack: Stack,
    is_migrated: bool,
    has_memory_limits: bool,
    _database: Option<TestDatabase>,
    home: TempDir,
}

impl Deref for PrivateStack {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl PrivateStack {
    /// Prepares everything but the processes, which run under the memory limits of `deploy/`. The logs are kept, in a folder
    /// named by the kind of stack and `name`.
    pub fn prepare(kind: Kind, name: &str) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("assay-e2e-").tempdir()?;
        let folder = home.path().to_owned();
        let data = folder.join("data");
        let settings = COMMON.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut launcher =
            Launcher { program: ASSAY.into(), folder, logs: fresh_logs(kind, name)?, settings };
        let (mut instances, database) = match kind {
            Kind::Standalone => (vec![Instance::standalone(&data)?], None),
            Kind::Distributed => {
                let database = add_backends(&mut launcher.settings, &data)?;
                (launcher.instances()?, Some(database))
            }
        };
        let has_memory_limits = limit_memory(&mut instances, kind)?;
        let stack = Stack {
            kind,
            launcher,
            process_names: instances.iter().map(Instance::role).collect(),
            // The gateway is the last of the roles; the standalone is the only process.
            base_url: instances
                .last()
                .map(|public| format!("http://{}", public.address()))
                .unwrap_or_default(),
            data,
            organization: "default".to_owned(),
            key: BOOTSTRAP_KEY.to_owned(),
        };
        Ok(Self { instances, stack, is_migrated: false, has_memory_limits, _database: database, home })
    }

    /// Starts every process that does not run, with these settings in addition, and waits until all of them are ready.
    pub async fn start_with(&mut self, settings: &[(&str, &str)]) -> Result<()> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.stack.launcher.settings.extend(settings);
        if self.kind == Kind::Distributed && !self.is_migrated {
            self.launcher.migrate().await?;
            self.is_migrated = true;
        }
        for instance in &mut self.instances {
            instance.start(&self.stack.launcher)?;
        }
        for instance in &self.instances {
            instance.await_ready(WAIT_LIMIT).await?;
        }
        Ok(())
    }

    /// Starts every process that does not run, and waits until all of them are ready.
    pub async fn start(&mut self) -> Result<()> {
        self.start_with(&[]).await
    }

    /// Restarts a process (or the standalone) with other settings.
    pub async fn restart_with(&mut self, name: &str, settings: &[(&str, &str)]) -> Result<()> {
        self.kill(&[name]);
        self.start_with(settings).await
    }

    /// SIGKILLs the standalone, or the named processes of the distributed stack.
    pub fn kill(&mut self, names: &[&str]) {
        let everything = self.kind == Kind::Standalone;
        let killed =
            self.instances.iter_mut().filter(|instance| everything || names.contains(&instance.role()));
        let mut killed: Vec<_> = killed.collect();
        killed.iter().for_each(|instance| instance.signal(Signal::SIGKILL));
        // Waits until each is reaped.
        killed.iter_mut().for_each(|instance| instance.kill());
    }

    pub fn signal(&self, name: &str, signal: Signal) -> Result<()> {
        self.instance(name)?.signal(signal);
        Ok(())
    }

    /// Exit status of a process; `None` while it runs.
    pub fn exit_status(&self, name: &str) -> Result<Option<ExitStatus>> {
        Ok(self.instance(name)?.exit_status())
    }

    pub fn pid(&self, name: &str) -> Result<u32> {
        self.instance(name)?.pid().with_context(|| format!("{name} does not run"))
    }

    /// Checks that no process was killed, and that none took more than its limit.
    #[allow(clippy::print_stderr, reason = "prints measured figures")]
    pub fn check_memory_limits(&self, what: &str) -> Result<()> {
        for (process, peak) in self.memory_kib("VmHWM:")? {
            let limit = memory_limit(self.kind, process)?;
            let limit_mib = limit / 1024 / 1024;
            eprintln!("  {what}: peak memory of {process}: {} of {limit_mib} MiB", peak / 1024);
            ensure!(self.exit_status(process)?.is_none(), "{what}: {process} ended");
            let kills = self.instance(process)?.memory_limit().map_or(Ok(0), MemoryLimit::kills)?;
            ensure!(kills == 0, "{what}: the kernel killed {process}");
            ensure!(peak * 1024 < limit, "{what}: {process} took {peak} KiB of {limit_mib} MiB");
        }
        Ok(())
    }

    /// A line of proc(5), `status`, of each process, in KiB: `VmHWM:` is the peak of its memory, `VmRSS:` what is in use.
    pub fn memory_kib(&self, field: &str) -> Result<Vec<(&'static str, u64)>> {
        let of_process = |name: &&'static str| {
            let status = fs::read_to_string(format!("/proc/{}/status", self.pid(name)?))?;
            let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such line")?;
            Ok((*name, line.trim().trim_end_matches(" kB").parse()?))
        };
        self.process_names().iter().map(of_process).collect()
    }

    /// Whether the kernel enforces the memory limits of the processes: not where we may not create control groups.
    pub fn has_memory_limits(&self) -> bool {
        self.has_memory_limits
    }

    /// `HOST:PORT` of a process.
    pub fn address(&self, name: &str) -> Result<&str> {
        Ok(self.instance(name)?.address())
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.launcher.log(name)
    }

    /// The stack as one of several scenarios sees it: with a new organization and a new folder, both named `name`.
    pub async fn share(&self, name: &str) -> Result<Stack> {
        let mut stack = self.stack.clone();
        stack.organization = name.replace('_', "-");
        stack.key = self.create_key(&stack.organization, &[]).await?;
        stack.launcher.folder = self.home.path().join(name);
        fs::create_dir(&stack.launcher.folder)?;
        Ok(stack)
    }

    /// Prints the end of every log on standard error.
    pub fn show_logs(&self) {
        let mut output = std::io::stderr();
        for name in self.process_names() {
            let path = self.log(name);
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
            // Best effort.
            let _ = writeln!(output, "\n--- end of {}\n{}", path.display(), end.join("\n"));
        }
    }

    fn instance(&self, name: &str) -> Result<&Instance> {
        let found = self.instances.iter().find(|instance| instance.role() == name);
        found.with_context(|| format!("the stack has no {name}"))
    }
}

/// Limits each process as its manifest does. `false` where there are no control groups.
fn limit_memory(instances: &mut [Instance], kind: Kind) -> Result<bool> {
    for instance in instances {
        let Some(limit) = MemoryLimit::create(memory_limit(kind, instance.role())?)? else {
            return Ok(false);
        };
        instance.limit_memory(limit);
    }
    Ok(true)
}

/// The memory limit of a process in its manifest, in bytes.
fn memory_limit(kind: Kind, process: &str) -> Result<u64> {
    if kind == Kind::Standalone {
        return Ok(STANDALONE_MEMORY);
    }
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/base");
    memory_limit_of_manifest(&manifests.join(format!("{process}.yaml")))
}

fn fresh_logs(kind: Kind, name: &str) -> Result<PathBuf> {
    let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("e2e/{kind:?}/{name}").to_lowercase());
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    Ok(logs)
}

/// Adds the settings of the distributed stack: a new database and broker namespace, addresses, secrets.
fn add_backends(settings: &mut Settings, data: &Path) -> Result<TestDatabase> {
    let template = Template::new("e2e", "roles and schemas");
    let template = owners().into_iter().fold(template, Template::owned_by);
    let database = TestDatabase::create(&template, |_url| Ok(()))?;
    for service_database in databases() {
        settings.insert(service_database.setting.to_owned(), database.url_as(service_database.owner)?);
    }
    let secret = |name: &str| random_name(&format!("a-secret-of-this-stack-{name}"));
    let backend_settings = [
        ("ASSAY_BUS__URL", services::rabbit()?.to_owned()),
        ("ASSAY_BUS__NAMESPACE", random_name("e2e")?),
        ("ASSAY_OBJECTS__URL", format!("file://{}", data.display())),
        ("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", secret("tokens")?),
        ("ASSAY_SECURITY__SIGNING_KEYS", format!("k1:{}", secret("signatures")?)),
    ];
    settings.extend(backend_settings.map(|(name, value)| (name.to_owned(), value)));
    set_addresses(settings)?;
    Ok(database)
}
