//! The cluster under measurement: durable servers, and every role as a process of the release build.

mod read_model;
mod servers;
mod stored_tickets;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use assay_platform::http_client::client_builder;
use assay_testkit::launcher::{Instance, Launcher, Settings, set_addresses};
use reqwest::{Client, Method};
use serde_json::{Value, json};

pub use self::read_model::ReadModel;
pub use self::servers::Servers;
pub use self::stored_tickets::{Sizes, StoredTickets};
use super::cpu::{Usage, seconds_of_threads};

const ASSAY: &str = env!("CARGO_BIN_EXE_assay");
/// The API key of the organization.
pub const KEY: &str = "bootstrap-key-of-the-load-test-clients";
const SERVICE_SECRET: &str = "the-secret-of-the-services-under-load";
/// The name that scoring-worker gives to the threads that evaluate a backlog; on them only the scorer computes.
const SCORER_THREADS: &str = "scorer";
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A running cluster. Dropping it kills its processes.
pub struct Cluster {
    instances: Vec<Instance>,
    launcher: Launcher,
    /// Names and process ids of its PostgreSQL and RabbitMQ, for their CPU time.
    servers: Vec<(String, u32)>,
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
            .insert("ASSAY_OBJECTS__URL".to_owned(), format!("file://{}", home.join("objects").display()));
        let launcher = launcher(home, settings);
        launcher.migrate().await?;
        let mut this = Self::of_roles(launcher).await?;
        this.servers = servers.processes();
        this.admin_url = Some(servers.admin_url(name));
        Ok(this)
    }

    /// Starts a second replica of every role on the same databases, bus and files. It calls only roles of the second replica.
    pub async fn replica(&self, servers: &Servers) -> Result<Self> {
        let name = self.home().file_name().context("a folder without a name")?.to_string_lossy();
        let home = servers.folder(&format!("{name}-replica"))?;
        Self::of_roles(launcher(home, self.launcher.settings.clone())).await
    }

    async fn of_roles(mut launcher: Launcher) -> Result<Self> {
        set_addresses(&mut launcher.settings)?;
        Self::start_all(launcher.instances()?, launcher).await
    }

    /// One process with everything in it.
    pub async fn standalone(servers: &Servers, name: &str) -> Result<Self> {
        let launcher = launcher(servers.folder(name)?, servers.common.clone());
        let instance = Instance::standalone(&launcher.folder.join("data"))?;
        Self::start_all(vec![instance], launcher).await
    }

    async fn start_all(instances: Vec<Instance>, launcher: Launcher) -> Result<Self> {
        // The gateway is the last of the roles; the standalone is the only process.
        let gateway = instances.last().context("no process")?.address().to_owned();
        let (servers, admin_url, http) = (Vec::new(), None, client_builder().build()?);
        let mut this = Self { instances, launcher, servers, admin_url, http, gateway };
        this.instances.iter_mut().try_for_each(|instance| instance.start(&this.launcher))?;
        for index in 0..this.instances.len() {
            this.start(this.instances[index].role()).await?;
        }
        Ok(this)
    }

    /// Starts a role, unless it runs, and waits until it is ready.
    pub async fn start(&mut self, role: &str) -> Result<()> {
        let index = self.index_of(role)?;
        self.instances[index].start(&self.launcher)?;
        let ready = self.instances[index].await_ready(START_LIMIT).await;
        ready.with_context(|| format!("{role} does not start: see {}", self.home().display()))
    }

    /// Stops a role gracefully.
    pub async fn stop(&mut self, role: &str) -> Result<()> {
        let index = self.index_of(role)?;
        self.instances[index].stop(STOP_LIMIT).await
    }

    fn index_of(&self, role: &str) -> Result<usize> {
        let found = self.instances.iter().position(|instance| instance.role() == role);
        found.with_context(|| format!("the cluster has no {role}"))
    }

    /// `HOST:PORT` of the public API.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// `HOST:PORT` of a role.
    pub fn address(&self, role: &str) -> Result<&str> {
        Ok(self.instances[self.index_of(role)?].address())
    }

    /// The value of a common setting.
    pub fn setting(&self, name: &str) -> &str {
        self.launcher.setting(name)
    }

    pub fn pid(&self, role: &str) -> Result<u32> {
        self.instances[self.index_of(role)?].pid().with_context(|| format!("{role} does not run"))
    }

    pub fn home(&self) -> &Path {
        &self.launcher.folder
    }

    /// CPU time of every process of the cluster, its servers and the load generator.
    pub fn usage(&self) -> Result<Usage> {
        let running = |instance: &Instance| Some((instance.name().to_owned(), instance.pid()?));
        let own = self.instances.iter().filter_map(running);
        Usage::now(&own.chain(self.servers.iter().cloned()).collect::<Vec<_>>())
    }

    /// CPU seconds of the threads that score, in all scoring-workers. Conversations of the priority lane are scored on others.
    pub fn scorer_seconds(&self) -> Result<f64> {
        let workers = self.instances.iter().filter_map(Instance::pid);
        workers.map(|pid| seconds_of_threads(pid, SCORER_THREADS)).sum()
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

    /// Creates a sign-in link of the console.
    pub async fn console_link(&self) -> Result<String> {
        let url = format!("http://{}", self.gateway);
        let output = self.launcher.command(&["console", "link", "--url", &url]).output().await?;
        ensure!(output.status.success(), "assay console link: {output:?}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Number of retried deliveries, from the logs.
    pub fn retried_deliveries(&self) -> Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(self.home())? {
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

/// The release build in this folder, with these settings and the secrets.
fn launcher(home: PathBuf, mut settings: Settings) -> Launcher {
    let own = [
        ("ASSAY_BOOTSTRAP_API_KEY", KEY),
        ("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", SERVICE_SECRET),
        ("ASSAY_SECURITY__SIGNING_KEYS", "k1:the-secret-of-the-signatures-under-load"),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Launcher { program: ASSAY.into(), logs: home.clone(), folder: home, settings }
}

/// Creates an empty folder.
fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)?;
    Ok(path.canonicalize()?)
}
