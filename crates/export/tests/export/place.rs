//! Fresh databases of either kind, and waiting for conditions.

use std::time::Duration;

use anyhow::{Result, anyhow};
use assay_export::{MIGRATIONS, SCHEMA};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::blocking;
use assay_testkit::{ServiceRole, Template, TestDatabase};
use tempfile::TempDir;

pub const DEADLINE: Duration = Duration::from_secs(30);

/// What keeps a database alive.
pub enum Place {
    Sqlite(#[allow(dead_code, reason = "removes the folder when dropped")] TempDir),
    Postgres(#[allow(dead_code, reason = "drops the database when dropped")] TestDatabase),
}

/// A migrated database.
pub struct Located {
    pub settings: DatabaseSettings,
    pub database: Database,
    pub _place: Place,
}

pub async fn sqlite() -> Result<Located> {
    let (settings, place) = empty_sqlite()?;
    let database = Database::open(&settings, SCHEMA)?;
    database.migrate(MIGRATIONS).await?;
    Ok(Located { settings, database, _place: place })
}

pub async fn postgres() -> Result<Located> {
    let template = Template::new("export", format!("{:?}", migration_names().await?))
        .owned_by(ServiceRole { role: "assay_export", schema: SCHEMA });
    let runtime = tokio::runtime::Handle::current();
    let created = blocking(move || {
        TestDatabase::create(&template, |url| {
            let settings = DatabaseSettings { database_url: url.to_owned().into(), database_pool_size: 1 };
            runtime.block_on(async { Database::open(&settings, SCHEMA)?.migrate(MIGRATIONS).await })?;
            Ok(())
        })
    });
    let test_database = created.await??;
    let database_url = test_database.url().to_owned().into();
    let settings = DatabaseSettings { database_url, database_pool_size: 10 };
    let database = Database::open(&settings, SCHEMA)?;
    Ok(Located { settings, database, _place: Place::Postgres(test_database) })
}

fn empty_sqlite() -> Result<(DatabaseSettings, Place)> {
    let folder = tempfile::tempdir()?;
    let database_url = format!("sqlite:{}", folder.path().join("export.db").display()).into();
    Ok((DatabaseSettings { database_url, database_pool_size: 10 }, Place::Sqlite(folder)))
}

/// What an empty database lacks.
async fn migration_names() -> Result<Vec<String>> {
    let (settings, _place) = empty_sqlite()?;
    Ok(Database::open(&settings, SCHEMA)?.pending_migrations(MIGRATIONS).await?)
}

/// Runs a statement as it is; answers how many rows it touched.
pub async fn execute(database: &Database, statement: impl Into<String>) -> Result<usize> {
    use diesel::RunQueryDsl as _;
    let query = diesel::sql_query(statement.into());
    let run = match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| query.execute(connection).map_err(Into::into)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| query.execute(connection).map_err(Into::into)).await
        }
    };
    run.map_err(|error: assay_platform::db::DatabaseError| error.into())
}

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    number: i64,
}

/// The value of a query for one number.
pub async fn number(database: &Database, expression: &str) -> Result<i64> {
    use diesel::RunQueryDsl as _;
    let query = diesel::sql_query(format!("SELECT ({expression}) AS number"));
    let run = match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| query.get_result::<Number>(connection).map_err(Into::into)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.read(move |connection| query.get_result::<Number>(connection).map_err(Into::into)).await
        }
    };
    Ok(run.map_err(|error: assay_platform::db::DatabaseError| anyhow!(error))?.number)
}

/// Waits for a condition.
pub async fn eventually<F: Future<Output = Result<bool>>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Result<()> {
    let polled = async {
        while !condition().await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(DEADLINE, polled).await.map_err(|_| anyhow!("waited in vain for {what}"))?
}

/// Each of these tests once on SQLite and once on PostgreSQL, with what `make` makes of a database.
macro_rules! on_both_databases {
    ($make:path: $($test:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test($make(crate::place::sqlite().await?)?).await
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test($make(crate::place::postgres().await?)?).await
            })*
        }
    };
}
pub(crate) use on_both_databases;
