//! Pool behaviour after idle connections broke (server restart, terminated sessions), and after a failed or slow statement,
//! which must keep the connection.

use std::sync::{Arc, Barrier};

use anyhow::{Context, Result, ensure};
use assay_platform::db::{Database, DatabaseError, Migrations, Postgres};
use assay_testkit::{ServiceDatabase, eventually};
use diesel::sql_types::{BigInt, Integer};
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};
use futures_util::future::try_join_all;

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];
const CONNECTIONS: usize = 5;
const OTHER_SESSIONS: &str =
    "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Integer)]
    number: i32,
}

#[derive(QueryableByName)]
struct Sessions {
    #[diesel(sql_type = BigInt)]
    sessions: i64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_idle_connections_cost_at_most_one_failed_read() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    for round in 1..=3 {
        warm_up(&postgres).await?;
        terminate_all_sessions(&database).await?;
        let mut failures = Vec::new();
        for _ in 0..2 * CONNECTIONS {
            match read(&postgres).await {
                Ok(number) => ensure!(number == 1, "{number}"),
                Err(error) => failures.push(error),
            }
        }
        ensure!(failures.len() <= 1, "round {round}: {failures:?}");
        ensure!(failures.iter().all(DatabaseError::is_transient), "round {round}: {failures:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_statement_keeps_its_connection() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let pid_before = backend_pid(&postgres).await?;
    let refused: Result<usize, DatabaseError> =
        postgres.run(|connection| Ok(sql_query("SELECT * FROM nothing").execute(connection)?)).await;
    ensure!(matches!(refused, Err(DatabaseError::Statement(_))), "{refused:?}");
    ensure!(backend_pid(&postgres).await? == pid_before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_statement_is_cancelled_and_keeps_its_connection() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    // A migration resets the statement timeout of its connection when it is done.
    let opened = database.open(SCHEMA)?;
    opened.migrate(&NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = opened else { anyhow::bail!("not PostgreSQL") };
    let pid_before = backend_pid(&postgres).await?;
    let ended: Result<usize, DatabaseError> =
        postgres.run(|connection| Ok(sql_query("SELECT pg_sleep(60)").execute(connection)?)).await;
    let reason = ended.err().context("the statement was not cancelled")?.to_string();
    ensure!(reason.contains("statement timeout"), "{reason}");
    ensure!(backend_pid(&postgres).await? == pid_before);
    Ok(())
}

/// Opens connections with transactions only: no statement is prepared on them.
async fn warm_up(postgres: &Postgres) -> Result<()> {
    let all_in_use = Arc::new(Barrier::new(CONNECTIONS));
    let uses = (0..CONNECTIONS).map(|_| {
        let all_in_use = all_in_use.clone();
        postgres.run(move |connection| {
            connection.transaction(|_| {
                all_in_use.wait();
                Ok::<(), DatabaseError>(())
            })
        })
    });
    try_join_all(uses).await?;
    Ok(())
}

async fn terminate_all_sessions(database: &ServiceDatabase) -> Result<()> {
    let url = database.postgres_database().context("no PostgreSQL")?.admin_url();
    let administrator = std::sync::Mutex::new(PgConnection::establish(&url)?);
    let count = |sql: String| -> Result<i64> {
        let mut administrator = administrator.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        Ok(sql_query(sql).get_result::<Sessions>(&mut *administrator)?.sessions)
    };
    let terminated = count(format!("SELECT count(pg_terminate_backend(pid)) AS sessions {OTHER_SESSIONS}"))?;
    ensure!(terminated >= CONNECTIONS.try_into()?, "{terminated} sessions");
    eventually("the sessions to end", || async {
        Ok(count(format!("SELECT count(*) AS sessions {OTHER_SESSIONS}"))? == 0)
    })
    .await
}

async fn read(postgres: &Postgres) -> Result<i32, DatabaseError> {
    let read = |connection: &mut PgConnection| {
        Ok(diesel::select(diesel::dsl::sql::<Integer>("1")).get_result(connection)?)
    };
    postgres.run(read).await
}

async fn backend_pid(postgres: &Postgres) -> Result<i32, DatabaseError> {
    let query = "SELECT pg_backend_pid() AS number";
    postgres.run(move |connection| Ok(sql_query(query).get_result::<Row>(connection)?.number)).await
}
