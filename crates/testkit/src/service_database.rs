//! The database of a service under test, on SQLite or PostgreSQL: the same tests run on both.

use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_platform::db::{Database, DatabaseSettings, Migrations};
use assay_platform::runtime::blocking;
use tempfile::TempDir;

use crate::database_users::SchemaOwner;
use crate::launcher;
use crate::test_database::{Template, TestDatabase};

/// How long [`eventually`] waits.
const DEADLINE: Duration = Duration::from_secs(20);

/// A migrated database of one test. Dropping it drops the database.
pub struct ServiceDatabase {
    settings: DatabaseSettings,
    storage: Storage,
}

enum Storage {
    Sqlite(#[allow(dead_code, reason = "removes the folder when dropped")] TempDir),
    Postgres(TestDatabase),
}

impl ServiceDatabase {
    /// On SQLite, migrated.
    pub async fn sqlite(schema: &'static str, migrations: &'static [Migrations]) -> Result<Self> {
        let this = Self::empty_sqlite(schema)?;
        this.open(schema)?.migrate(migrations).await?;
        Ok(this)
    }

    /// On SQLite, not migrated.
    pub fn empty_sqlite(schema: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let database_url =
            format!("sqlite:{}", folder.path().join(format!("{schema}.sqlite")).display()).into();
        let settings = DatabaseSettings { database_url, database_pool_size: 4 };
        Ok(Self { settings, storage: Storage::Sqlite(folder) })
    }

    /// On PostgreSQL, as the service's database user `assay_<schema>`, cloned from a template that is migrated once.
    pub async fn postgres(schema: &'static str, migrations: &'static [Migrations]) -> Result<Self> {
        // On an empty database every migration is pending. Both databases have the same ones, so the names, read from
        // SQLite, identify the template.
        let migration_names =
            Self::empty_sqlite(schema)?.open(schema)?.pending_migrations(migrations).await?;
        let template = Template::new(schema, migration_names.join(" ")).owned_by(owner_of(schema)?);
        let runtime = tokio::runtime::Handle::current();
        let migrate = move |url: &str| {
            let settings = DatabaseSettings { database_url: url.to_owned().into(), database_pool_size: 1 };
            runtime.block_on(async { Database::open(&settings, schema)?.migrate(migrations).await })?;
            Ok(())
        };
        let database = blocking(move || TestDatabase::create(&template, migrate)).await??;
        let database_url = database.url().to_owned().into();
        let settings = DatabaseSettings { database_url, database_pool_size: 8 };
        Ok(Self { settings, storage: Storage::Postgres(database) })
    }

    /// The settings with which a service opens the database.
    pub fn settings(&self) -> DatabaseSettings {
        self.settings.clone()
    }

    /// The PostgreSQL database, for administrative access; `None` on SQLite.
    pub fn postgres_database(&self) -> Option<&TestDatabase> {
        match &self.storage {
            Storage::Postgres(database) => Some(database),
            Storage::Sqlite(_) => None,
        }
    }

    /// Opens the database as the service does.
    pub fn open(&self, schema: &'static str) -> Result<Database> {
        Ok(Database::open(&self.settings, schema)?)
    }
}

fn owner_of(schema: &'static str) -> Result<SchemaOwner> {
    let owner = launcher::owners().into_iter().find(|owner| owner.schema == schema);
    owner.with_context(|| format!("there is no service with the schema `{schema}`"))
}

/// Waits for a condition; the timeout error names `what`.
pub async fn eventually<F: Future<Output = Result<bool>>>(
    what: &str,
    condition: impl FnMut() -> F,
) -> Result<()> {
    eventually_within(DEADLINE, what, condition).await
}

/// [`eventually`] with another deadline.
pub async fn eventually_within<F: Future<Output = Result<bool>>>(
    deadline: Duration,
    what: &str,
    mut condition: impl FnMut() -> F,
) -> Result<()> {
    let polled = async {
        while !condition().await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(deadline, polled).await.with_context(|| format!("timed out waiting for {what}"))?
}

/// Runs each test on SQLite and on PostgreSQL: `on_both_databases! { TestApp { a_test, another_test } }`, where `TestApp`
/// has the constructors `on_sqlite` and `on_postgres`, and a test is an async function from it to a result.
#[macro_export]
macro_rules! on_both_databases {
    ($fixture:ty { $($test:ident,)* }) => {
        mod on_sqlite {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test(<$fixture>::on_sqlite().await?).await
            })*
        }
        mod on_postgres {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test(<$fixture>::on_postgres().await?).await
            })*
        }
    };
}
