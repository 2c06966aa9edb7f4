//! PostgreSQL and RabbitMQ of the cluster: durable, and can be killed and restarted.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use assay_testkit::launcher::{Settings, databases, owners};
use assay_testkit::process::Signal;
use assay_testkit::{
    Location, PostgresOptions, PrivatePostgres, PrivateRabbit, RabbitOptions, SchemaOwner, SmallDisk,
    provision_services,
};

const DATABASE: &str = "assay";
const PASSWORD: &str = "chaos";

/// The servers; `None` while stopped.
pub struct Backends {
    postgres: Option<PrivatePostgres>,
    rabbit: Option<PrivateRabbit>,
    postgres_folder: PathBuf,
    rabbit_folder: PathBuf,
}

impl Backends {
    /// Starts both; the database lies on `disk`.
    pub fn start(home: &Path, disk: &SmallDisk) -> Result<Self> {
        let mut this = Self {
            postgres: None,
            rabbit: None,
            postgres_folder: disk.folder().join("postgres"),
            rabbit_folder: home.join("rabbitmq"),
        };
        this.heal()?;
        provision_services(&this.postgres()?.url(), DATABASE, PASSWORD, &owners())?;
        Ok(this)
    }

    /// Restarts dead servers and resumes paused ones.
    pub fn heal(&mut self) -> Result<()> {
        // A server that exited without a signal of ours, for example on a full disk, is restarted, too.
        if let Some(postgres) = self.postgres.take_if(|postgres| !postgres.is_running()) {
            postgres.kill()?;
        }
        self.rabbit.take_if(|rabbit| !rabbit.is_running());
        if self.postgres.is_none() {
            let location = Location::Folder(self.postgres_folder.clone());
            let options = PostgresOptions { location, durable: true, dies_with_us: true };
            self.postgres = Some(PrivatePostgres::start(&options)?);
        }
        if self.rabbit.is_none() {
            let location = Location::Folder(self.rabbit_folder.clone());
            self.rabbit = Some(PrivateRabbit::start(&RabbitOptions { location, dies_with_us: true })?);
        }
        self.postgres()?.signal_all(Signal::SIGCONT)?;
        self.rabbit()?.signal(Signal::SIGCONT);
        Ok(())
    }

    pub fn kill_postgres(&mut self) -> Result<()> {
        self.postgres.take().map_or(Ok(()), PrivatePostgres::kill)
    }

    pub fn stop_postgres(&mut self) -> Result<()> {
        if let Some(postgres) = self.postgres.take() {
            postgres.stop();
        }
        Ok(())
    }

    pub fn freeze_postgres(&mut self) -> Result<()> {
        self.postgres()?.signal_all(Signal::SIGSTOP)
    }

    pub fn kill_rabbit(&mut self) -> Result<()> {
        // Dropping the server kills it.
        self.rabbit = None;
        Ok(())
    }

    pub fn freeze_rabbit(&mut self) -> Result<()> {
        self.rabbit()?.signal(Signal::SIGSTOP);
        Ok(())
    }

    pub fn stop_rabbit(&mut self) -> Result<()> {
        if let Some(rabbit) = self.rabbit.take() {
            rabbit.stop();
        }
        Ok(())
    }

    pub fn postgres_address(&self) -> Option<String> {
        self.postgres.as_ref().map(|postgres| format!("127.0.0.1:{}", postgres.port()))
    }

    pub fn rabbit_address(&self) -> Option<String> {
        self.rabbit.as_ref().map(|rabbit| format!("127.0.0.1:{}", rabbit.port()))
    }

    /// URL of the broker, without a proxy.
    pub fn amqp_url(&self) -> Result<String> {
        Ok(self.rabbit()?.amqp_url())
    }

    /// URL of the broker at `address`, that of a proxy.
    pub fn amqp_url_at(&self, address: &str) -> Result<String> {
        let url = self.amqp_url()?;
        let (credentials, rest) = url.split_once('@').context("no credentials")?;
        let (_, host) = rest.split_once('/').context("no virtual host")?;
        Ok(format!("{credentials}@{address}/{host}"))
    }

    /// URL of a service's database, without a proxy.
    pub fn database(&self, owner: SchemaOwner) -> Result<String> {
        let address = self.postgres_address().context("PostgreSQL does not run")?;
        Ok(database_url(owner, &address))
    }

    /// Settings of commands: databases and broker without proxies; nothing for a server that does not run.
    pub fn settings(&self) -> Settings {
        let set = |name: &str, url: Result<String>| Some((name.to_owned(), url.ok()?));
        let databases =
            databases().filter_map(|database| set(database.setting, self.database(database.owner)));
        databases.chain(set("ASSAY_BUS__URL", self.amqp_url())).collect()
    }

    fn postgres(&self) -> Result<&PrivatePostgres> {
        self.postgres.as_ref().context("PostgreSQL does not run")
    }

    fn rabbit(&self) -> Result<&PrivateRabbit> {
        self.rabbit.as_ref().context("RabbitMQ does not run")
    }
}

/// The URL of a service's database at `address`, the server's or a proxy's.
pub fn database_url(owner: SchemaOwner, address: &str) -> String {
    format!("postgres://{}:{PASSWORD}@{address}/{DATABASE}", owner.user)
}
