//! PostgreSQL and RabbitMQ, as durable as in production. The measured service and the baselines use them in turn.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_testkit::launcher::{Settings, databases, owners};
use assay_testkit::{
    Location, PostgresOptions, PrivatePostgres, PrivateRabbit, RabbitOptions, execute, provision_services,
    query_texts,
};
use tempfile::TempDir;

use super::fresh_folder;

const PASSWORD: &str = "load";

pub struct Servers {
    // Drop order: the folder last.
    postgres: PrivatePostgres,
    rabbit: PrivateRabbit,
    home: TempDir,
    /// Settings of every cluster.
    pub(super) common: Settings,
}

impl Servers {
    /// Starts both, durable, in this folder.
    pub fn start(home: TempDir) -> Result<Self> {
        // PostgreSQL may run as another user.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755))?;
        let location = Location::Folder(home.path().join("postgres"));
        let postgres =
            PrivatePostgres::start(&PostgresOptions { location, durable: true, dies_with_us: true })?;
        let location = Location::Folder(home.path().join("rabbitmq"));
        let rabbit = PrivateRabbit::start(&RabbitOptions { location, dies_with_us: true })?;
        Ok(Self { postgres, rabbit, home, common: Settings::new() })
    }

    /// Clusters that start from now on evaluate with this model.
    pub fn use_model(&mut self, model: &[u8]) -> Result<()> {
        let path = self.home.path().join("reader.bin");
        fs::write(&path, model)?;
        self.common.insert("ASSAY_SCORING__MODEL".to_owned(), path.display().to_string());
        Ok(())
    }

    /// Creates a database with the database users and schemas of all services; returns its settings.
    pub(super) fn provision(&self, name: &str) -> Result<Settings> {
        provision_services(&self.postgres.url(), name, PASSWORD, &owners())?;
        let port = self.postgres.port();
        let url = |user: &str| format!("postgres://{user}:{PASSWORD}@127.0.0.1:{port}/{name}");
        let mut settings = self.common.clone();
        settings.extend(databases().map(|database| (database.setting.to_owned(), url(database.owner.user))));
        settings.insert("ASSAY_BUS__URL".to_owned(), self.rabbit.amqp_url());
        settings.insert("ASSAY_BUS__NAMESPACE".to_owned(), name.to_owned());
        Ok(settings)
    }

    /// The administrator's address of a database.
    pub fn admin_url(&self, database: &str) -> String {
        self.postgres.admin_url(database)
    }

    /// Runs statements as the administrator.
    pub fn sql(&self, database: &str, statements: &str) -> Result<()> {
        execute(&self.admin_url(database), statements)
    }

    /// Flushes pending writes of one measurement to the disk, so that they do not affect the next one.
    pub fn settle_disk(&self) -> Result<()> {
        self.sql("postgres", "CHECKPOINT")?;
        ensure!(Command::new("sync").status()?.success(), "sync failed");
        Ok(())
    }

    /// The number returned by a query.
    pub fn number(&self, database: &str, query: &str) -> Result<i64> {
        let query = format!("SELECT ({query})::bigint::text AS value");
        Ok(query_texts(&self.admin_url(database), &query)?.concat().parse()?)
    }

    /// The texts returned by a query, one per row.
    pub fn texts(&self, database: &str, query: &str) -> Result<Vec<String>> {
        let query = format!("SELECT answer.text::text AS value FROM ({query}) AS answer (text)");
        query_texts(&self.admin_url(database), &query)
    }

    /// A new, empty folder.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        fresh_folder(&self.home.path().join(name))
    }

    /// Free space on the databases' disk.
    pub fn free_disk_bytes(&self) -> Result<u64> {
        let output = Command::new("df").args(["--output=avail", "-B1"]).arg(self.home.path()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().nth(1).and_then(|line| line.trim().parse().ok()).with_context(|| format!("df: {text}"))
    }

    /// Processes for measuring CPU time.
    pub(super) fn processes(&self) -> Vec<(String, u32)> {
        vec![("PostgreSQL".to_owned(), self.postgres.pid()), ("RabbitMQ".to_owned(), self.rabbit.pid())]
    }

    /// A PostgreSQL program, such as `psql`.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        assay_testkit::postgres_program(name)
    }
}
