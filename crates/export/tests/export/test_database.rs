//! A database for tests, and plain SQL statements on it.

use anyhow::{Result, anyhow};
use assay_export::{MIGRATIONS, SCHEMA};
use assay_platform::db::{Database, DatabaseError, DatabaseSettings};
use assay_testkit::ServiceDatabase;

/// A migrated database.
pub struct TestDatabase {
    pub database: Database,
    service: ServiceDatabase,
}

impl TestDatabase {
    pub async fn sqlite() -> Result<Self> {
        Self::at(ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?)
    }

    pub async fn postgres() -> Result<Self> {
        Self::at(ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?)
    }

    pub fn settings(&self) -> DatabaseSettings {
        self.service.settings()
    }

    fn at(service: ServiceDatabase) -> Result<Self> {
        Ok(Self { database: service.open(SCHEMA)?, service })
    }
}

/// Executes a statement; returns the number of affected rows.
pub async fn execute(database: &Database, statement: impl Into<String>) -> Result<usize> {
    use diesel::connection::SimpleConnection as _;
    use diesel::{Connection as _, PgConnection, RunQueryDsl as _};
    let query = diesel::sql_query(statement.into());
    let run = match database {
        Database::Postgres(postgres) => {
            // A busy machine takes longer for large statements than the limit of the role.
            let run = move |connection: &mut PgConnection| {
                connection.transaction(|connection| -> Result<usize, DatabaseError> {
                    connection.batch_execute("SET LOCAL statement_timeout = '60s'")?;
                    Ok(query.execute(connection)?)
                })
            };
            postgres.run_long(run).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| query.execute(connection).map_err(Into::into)).await
        }
    };
    run.map_err(|error: DatabaseError| error.into())
}

#[derive(diesel::QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    number: i64,
}

/// The value of a query for a single number.
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
    Ok(run.map_err(|error: DatabaseError| anyhow!(error))?.number)
}
