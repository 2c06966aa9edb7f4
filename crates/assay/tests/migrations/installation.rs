//! The databases of all services, and `assay migrate` on them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_platform::db::Migrations;
use assay_testkit::wait::wait_for;
use assay_testkit::{SchemaOwner, SchemaSteps, Template, TestDatabase};
use tempfile::TempDir;

/// Time limit of every wait.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A service with a schema.
#[derive(Clone, Copy)]
pub struct Service {
    pub owner: SchemaOwner,
    pub migrations: &'static [Migrations],
}

/// Every service that has migrations. `files::every_migrations_folder_belongs_to_a_service` finds a missing one.
pub fn services() -> [Service; 5] {
    let service = |user, schema, migrations| Service { owner: SchemaOwner { user, schema }, migrations };
    [
        service("assay_registry", assay_agent_registry::SCHEMA, assay_agent_registry::MIGRATIONS),
        service("assay_ingest", assay_ingest::SCHEMA, assay_ingest::MIGRATIONS),
        service("assay_scoring", assay_scoring_worker::SCHEMA, assay_scoring_worker::MIGRATIONS),
        service("assay_export", assay_export::SCHEMA, assay_export::MIGRATIONS),
        service("assay_webhooks", assay_webhooks::SCHEMA, assay_webhooks::MIGRATIONS),
    ]
}

/// Empty databases of all services.
pub struct Installation {
    storage: Storage,
}

enum Storage {
    Postgres(TestDatabase),
    Sqlite(TempDir),
}

impl Installation {
    /// A schema for each service, in one database.
    pub fn on_postgres() -> Result<Self> {
        Ok(Self { storage: Storage::Postgres(TestDatabase::create(&empty_template(), |_url| Ok(()))?) })
    }

    /// The same on a given server.
    pub fn on_server(administrator_url: &str) -> Result<Self> {
        let database = TestDatabase::create_on(administrator_url, &empty_template(), |_url| Ok(()))?;
        Ok(Self { storage: Storage::Postgres(database) })
    }

    /// Updates the address after the server was restarted.
    pub fn server_moved_to(&mut self, administrator_url: &str) -> Result<()> {
        match &mut self.storage {
            Storage::Postgres(database) => database.server_moved_to(administrator_url),
            Storage::Sqlite(_) => anyhow::bail!("SQLite has no server"),
        }
    }

    /// A file for each service.
    pub fn on_sqlite() -> Result<Self> {
        Ok(Self { storage: Storage::Sqlite(tempfile::tempdir()?) })
    }

    /// The schema of a service.
    pub fn schema(&self, service: Service) -> Result<SchemaSteps> {
        match &self.storage {
            Storage::Postgres(database) => SchemaSteps::postgres(
                &database.url_as(service.owner)?,
                service.owner.schema,
                service.migrations,
            ),
            Storage::Sqlite(folder) => SchemaSteps::sqlite(&file(folder.path(), service), service.migrations),
        }
    }

    /// A dump of all schemas.
    pub fn dump(&self) -> Result<String> {
        let dumps = services().into_iter().map(|service| {
            let mut schema = self.schema(service)?;
            Ok(format!("{:?}\n{}", schema.applied()?, schema.dump()?))
        });
        Ok(dumps.collect::<Result<Vec<_>>>()?.join("\n"))
    }

    /// The administrator's address, on PostgreSQL.
    pub fn administrator_url(&self) -> Result<String> {
        match &self.storage {
            Storage::Postgres(database) => Ok(database.admin_url()),
            Storage::Sqlite(_) => anyhow::bail!("SQLite has no administrator"),
        }
    }

    /// Starts `assay migrate`.
    pub fn start_migrate(&self) -> Result<Migrate> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ASSAY_"))
        {
            command.env_remove(name);
        }
        for service in services() {
            let url = match &self.storage {
                Storage::Postgres(database) => database.url_as(service.owner)?,
                Storage::Sqlite(folder) => format!("sqlite:{}", file(folder.path(), service).display()),
            };
            command.env(format!("ASSAY_{}__DATABASE_URL", service.owner.schema.to_uppercase()), url);
        }
        command.arg("migrate").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Migrate(Some(command.spawn()?)))
    }

    /// Runs `assay migrate`, which must succeed; returns its output.
    pub fn run_migrate(&self) -> Result<String> {
        self.start_migrate()?.finish()?.succeeded()
    }
}

fn empty_template() -> Template {
    let template = Template::new("migrations", "roles and schemas");
    services().into_iter().fold(template, |template, service| template.owned_by(service.owner))
}

fn file(folder: &Path, service: Service) -> std::path::PathBuf {
    folder.join(format!("{}.sqlite", service.owner.schema))
}

/// A running `assay migrate`. Dropping it kills it.
pub struct Migrate(Option<Child>);

pub struct Finished(Output);

impl Migrate {
    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        let child = self.0.as_mut().context("`assay migrate` has already been awaited")?;
        Ok(child.try_wait()?.is_some())
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Result<Finished> {
        let child = self.0.as_mut().context("`assay migrate` has already been awaited")?;
        child.kill()?;
        self.finish()
    }

    pub fn finish(mut self) -> Result<Finished> {
        wait_for("the end of `assay migrate`", LIMIT, || Ok(self.has_ended()?.then_some(())))?;
        let child = self.0.take().context("`assay migrate` has already been awaited")?;
        Ok(Finished(child.wait_with_output()?))
    }
}

impl Drop for Migrate {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Finished {
    /// Its output; an error unless it succeeded.
    pub fn succeeded(self) -> Result<String> {
        let output = self.output();
        ensure!(self.0.status.success(), "assay migrate ended with {}: {output}", self.0.status);
        Ok(output)
    }

    /// Its output; an error unless it failed with exit code 1.
    pub fn failed(self) -> Result<String> {
        let output = self.output();
        ensure!(self.0.status.code() == Some(1), "assay migrate ended with {}: {output}", self.0.status);
        Ok(output)
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}
