//! The cluster under measurement: durable servers, and every role as a process of the release build.

mod read_model;
mod servers;
mod stored_tickets;
mod tokens;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use assay_testkit::process::{Output, Process, ProcessSpec, Signal};
use reqwest::{Client, Method};
use serde_json::{Value, json};

pub use self::read_model::ReadModel;
pub use self::servers::Servers;
pub use self::stored_tickets::{Sizes, StoredTickets};
use super::cpu::Usage;

const ASSAY: &str = env!("CARGO_BIN_EXE_assay");
const KEY: &str = "load-test-bootstrap-key";
const SERVICE_SECRET: &str = "the-secret-of-the-services-under-load";
const START_LIMIT: Duration = Duration::from_secs(60);

/// Subcommand, setting of its address, setting by which others find it.
const ROLES: [(&str, &str, Option<&str>); 7] = [
    ("agent-registry", "ASSAY_REGISTRY__LISTEN", Some("ASSAY_SERVICES__REGISTRY_URL")),
    ("ingest", "ASSAY_INGEST__LISTEN", Some("ASSAY_SERVICES__INGEST_URL")),
    ("scoring-worker", "ASSAY_SCORING__LISTEN", Some("ASSAY_SERVICES__SCORING_URL")),
    ("export", "ASSAY_EXPORT__LISTEN", Some("ASSAY_SERVICES__EXPORT_URL")),
    ("export-worker", "ASSAY_EXPORT_WORKER__LISTEN", None),
    ("webhooks", "ASSAY_WEBHOOKS__LISTEN", Some("ASSAY_SERVICES__WEBHOOKS_URL")),
    ("gateway", "ASSAY_GATEWAY__LISTEN", None),
];

/// A running cluster. Dropping it kills its processes.
pub struct Cluster {
    processes: Vec<(String, Process)>,
    addresses: Vec<(String, String)>,
    settings: Vec<(String, String)>,
    servers: Vec<(String, u32)>,
    home: PathBuf,
    /// Administrator's URL of its PostgreSQL database.
    admin_url: Option<String>,
    http: Client,
    gateway: String,
}

impl Cluster {
    /// Starts every role on these servers, with a new database.
    pub async fn distributed(servers: &Servers, name: &str) -> Result<Self> {
        let home = servers.folder(name)?;
        let mut settings = servers.provision(name)?;
        settings
            .push(("ASSAY_OBJECTS__URL".to_owned(), format!("file://{}", home.join("objects").display())));
        let mut this = Self::empty(home, settings);
        this.servers = servers.processes();
        this.admin_url = Some(servers.admin_url(name));
        this.run(&["migrate"]).await?;
        this.start_roles().await?;
        Ok(this)
    }

    /// Starts a second replica of every role on the same databases, bus and files; each calls the roles of its own replica.
    pub async fn replica(&self, servers: &Servers) -> Result<Self> {
        let is_own = |name: &str| name.ends_with("__LISTEN") || name.starts_with("ASSAY_SERVICES__");
        let shared = self.settings.iter().filter(|(name, _)| !is_own(name)).cloned().collect();
        let name = self.home.file_name().context("a folder without a name")?.to_string_lossy();
        let mut this = Self::empty(servers.folder(&format!("{name}-replica"))?, shared);
        this.start_roles().await?;
        Ok(this)
    }

    async fn start_roles(&mut self) -> Result<()> {
        for (role, listen, url) in ROLES {
            let address = free_address()?;
            if let Some(url) = url {
                self.settings.push((url.to_owned(), format!("http://{address}")));
            }
            self.settings.push((listen.to_owned(), address.clone()));
            self.addresses.push((role.to_owned(), address));
        }
        self.gateway = self.address("gateway")?.to_owned();
        for (role, _, _) in ROLES {
            self.start(role).await?;
        }
        Ok(())
    }

    /// One process with everything in it.
    pub async fn standalone(servers: &Servers, name: &str) -> Result<Self> {
        let mut this = Self::empty(servers.folder(name)?, Vec::new());
        this.gateway = free_address()?;
        this.addresses.push(("standalone".to_owned(), this.gateway.clone()));
        this.start("standalone").await?;
        Ok(this)
    }

    fn empty(home: PathBuf, mut settings: Vec<(String, String)>) -> Self {
        let own = [
            ("ASSAY_BOOTSTRAP_API_KEY", KEY),
            ("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", SERVICE_SECRET),
            ("ASSAY_SECURITY__SIGNING_KEYS", "k1:the-secret-of-the-signatures-under-load"),
        ];
        settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self {
            processes: Vec::new(),
            addresses: Vec::new(),
            settings,
            servers: Vec::new(),
            home,
            admin_url: None,
            http: Client::new(),
            gateway: String::new(),
        }
    }

    /// Starts a role that does not run, and waits until it is ready.
    pub async fn start(&mut self, role: &str) -> Result<()> {
        let mut arguments = vec![role.to_owned()];
        if role == "standalone" {
            let data = self.home.join("data").display().to_string();
            arguments.extend(["--listen".to_owned(), self.gateway.clone(), "--data-dir".to_owned(), data]);
        }
        let log = self.home.join(format!("{role}.log"));
        let mut spec = ProcessSpec::new(role, ASSAY, Output::File(log))
            .arguments(&arguments)
            .folder(&self.home)
            .on_parent_death(Some(Signal::SIGKILL));
        for name in inherited_settings() {
            spec = spec.without_variable(name);
        }
        for (name, value) in &self.settings {
            spec = spec.variable(name, value);
        }
        self.processes.push((role.to_owned(), Process::spawn(&spec)?));
        let address = self.address(role)?.to_owned();
        let url = format!("http://{address}/readyz");
        let ready = async {
            while !matches!(self.http.get(&url).send().await, Ok(answer) if answer.status() == 200) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(START_LIMIT, ready).await.is_err() {
            bail!("{role} does not start: see {}", self.home.display());
        }
        Ok(())
    }

    /// Stops a role gracefully.
    pub fn stop(&mut self, role: &str) -> Result<()> {
        let index = self.processes.iter().position(|(name, _)| name == role).context("it does not run")?;
        let (_, process) = self.processes.remove(index);
        process.stop(Signal::SIGTERM, Duration::from_secs(30));
        Ok(())
    }

    async fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = tokio::process::Command::new(ASSAY);
        for name in inherited_settings() {
            command.env_remove(name);
        }
        let output = command.args(arguments).envs(self.settings.clone()).output().await?;
        if !output.status.success() {
            bail!("assay {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// `HOST:PORT` of the public API.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// `HOST:PORT` of a role.
    pub fn address(&self, role: &str) -> Result<&str> {
        let found = self.addresses.iter().find(|(name, _)| name == role);
        found.map(|(_, address)| address.as_str()).with_context(|| format!("{role} has no address"))
    }

    /// The value of a common setting.
    pub fn setting(&self, name: &str) -> Result<&str> {
        let found = self.settings.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| value.as_str()).with_context(|| format!("{name} is not set"))
    }

    pub fn pid(&self, role: &str) -> Result<u32> {
        let found = self.processes.iter().find(|(name, _)| name == role);
        found.map(|(_, process)| process.pid()).with_context(|| format!("{role} does not run"))
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The API key of the organization.
    pub fn key(&self) -> &'static str {
        KEY
    }

    /// CPU time of every process of the cluster, its servers and the load generator.
    pub fn usage(&self) -> Result<Usage> {
        let own = self.processes.iter().map(|(name, process)| (name.clone(), process.pid()));
        Usage::now(&own.chain(self.servers.iter().cloned()).collect::<Vec<_>>())
    }

    /// A call of the public API: status and body.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let url = format!("http://{}{path}", self.gateway);
        let mut request = self.http.request(method, url).bearer_auth(KEY);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// Number of retried deliveries, from the logs.
    pub fn deliveries_put_off(&self) -> Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(&self.home)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                count += fs::read_to_string(path)?.matches("delivery is tried again later").count();
            }
        }
        Ok(count)
    }

    /// The plain HTTP client.
    pub fn http(&self) -> &Client {
        &self.http
    }

    pub async fn register_agents(&self, external_ids: impl IntoIterator<Item = &String>) -> Result<()> {
        for external_id in external_ids {
            let agent = json!({"external_id": external_id, "name": external_id});
            let (status, answer) = self.call(Method::POST, "/v1/agents", Some(&agent)).await?;
            if status != 201 {
                bail!("the agent {external_id} cannot be registered: {status} {answer}");
            }
        }
        Ok(())
    }
}

/// A free address.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Settings in the environment of the test, which must not reach the product.
fn inherited_settings() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("ASSAY_"))
}

/// Creates an empty folder.
fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)?;
    Ok(path.canonicalize()?)
}
