//! Plain SQL on the open database of a service, PostgreSQL or SQLite, for tests that read or change its tables.

use anyhow::Result;
use assay_platform::db::{Database, DatabaseError, Postgres};
use diesel::connection::SimpleConnection as _;
use diesel::sql_types::BigInt;
use diesel::{Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, sql_query};

use crate::query::Row;

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    value: i64,
}

/// Executes one statement; returns the number of changed rows. SQLite ignores what follows the first statement.
///
/// # Errors
/// When the database refuses the statement, or PostgreSQL takes more than a minute for it.
pub async fn execute_on(database: &Database, statement: impl Into<String>) -> Result<usize> {
    let statement = statement.into();
    let changed: Result<usize, DatabaseError> = match database {
        Database::Postgres(postgres) => loop {
            match execute_on_postgres(postgres, statement.clone()).await {
                // With the maintenance of the running service: PostgreSQL has rolled this statement back, so it is tried again.
                Err(error) if error.to_string().contains("deadlock detected") => {}
                result => break result,
            }
        },
        Database::Sqlite(sqlite) => {
            sqlite.write(move |connection| Ok(sql_query(statement).execute(connection)?)).await
        }
    };
    Ok(changed?)
}

async fn execute_on_postgres(postgres: &Postgres, statement: String) -> Result<usize, DatabaseError> {
    let run = move |connection: &mut PgConnection| {
        connection.transaction(|connection| -> Result<usize, DatabaseError> {
            // A busy machine takes longer for large statements than the `statement_timeout` of a service.
            connection.batch_execute("SET LOCAL statement_timeout = '60s'")?;
            Ok(sql_query(statement).execute(connection)?)
        })
    };
    postgres.run_long(run).await
}

/// The value of a query for a single number.
///
/// # Errors
/// When the database refuses the query, or its value is no number.
pub async fn number_on(database: &Database, query: &str) -> Result<i64> {
    let query = sql_query(format!("SELECT CAST(({query}) AS BIGINT) AS value"));
    let number: Result<Number, DatabaseError> = match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| Ok(query.get_result::<Number>(connection)?)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.read(move |connection| Ok(query.get_result::<Number>(connection)?)).await
        }
    };
    Ok(number?.value)
}

/// The text column `value` of a query.
///
/// # Errors
/// When the database refuses the query.
pub async fn texts_on(database: &Database, query: &str) -> Result<Vec<String>> {
    let query = sql_query(query);
    let rows: Result<Vec<Row>, DatabaseError> = match database {
        Database::Postgres(postgres) => {
            postgres.run(move |connection| Ok(query.load::<Row>(connection)?)).await
        }
        Database::Sqlite(sqlite) => sqlite.read(move |connection| Ok(query.load::<Row>(connection)?)).await,
    };
    Ok(rows?.into_iter().map(|row| row.value).collect())
}

/// Runs work in one write transaction: `write_on!(&database, |connection| statement(connection))`. The work is compiled for
/// the connections of both databases.
#[macro_export]
macro_rules! write_on {
    ($database:expr, |$connection:ident| $work:expr) => {
        match $database {
            assay_platform::db::Database::Postgres(postgres) => {
                postgres.write(move |$connection| $work).await
            }
            assay_platform::db::Database::Sqlite(sqlite) => sqlite.write(move |$connection| $work).await,
        }
    };
}
