//! Connections that die while nobody uses them (a server that restarts, an administrator who ends sessions), and those
//! that must not be lost: when a statement fails or is too slow.

use std::sync::{Arc, Barrier};

use anyhow::{Context, Result, ensure};
use assay_platform::db::{Database, DatabaseError, Migrations, Postgres};
use assay_testkit::{ServiceDatabase, eventually};
use diesel::sql_types::{BigInt, Integer};
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};
use futures_util::future::try_join_all;

/// Any service's: a test database has its role.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];
const CONNECTIONS: usize = 5;
const OTHERS: &str = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

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
async fn connections_that_died_unused_cost_one_failed_read_at_most() -> Result<()> {
    let place = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = place.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    for round in 1..=3 {
        warm_up(&postgres).await?;
        end_all_sessions(&place).await?;
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
async fn work_that_fails_on_a_connection_that_lives_does_not_cost_the_connection() -> Result<()> {
    let place = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = place.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let before = backend(&postgres).await?;
    let refused: Result<usize, DatabaseError> =
        postgres.run(|connection| Ok(sql_query("SELECT * FROM nothing").execute(connection)?)).await;
    ensure!(matches!(refused, Err(DatabaseError::Statement(_))), "{refused:?}");
    ensure!(backend(&postgres).await? == before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_too_slow_is_ended_by_the_server_and_its_connection_lives_on() -> Result<()> {
    let place = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    // It sets the limit of its connection back when it is done.
    let database = place.open(SCHEMA)?;
    database.migrate(&NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database else { anyhow::bail!("not PostgreSQL") };
    let before = backend(&postgres).await?;
    let ended: Result<usize, DatabaseError> =
        postgres.run(|connection| Ok(sql_query("SELECT pg_sleep(60)").execute(connection)?)).await;
    let reason = ended.err().context("it was not ended")?.to_string();
    ensure!(reason.contains("statement timeout"), "{reason}");
    ensure!(backend(&postgres).await? == before);
    Ok(())
}

/// Opens connections that have only done transactions: no statement was ever prepared on them.
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

async fn end_all_sessions(place: &ServiceDatabase) -> Result<()> {
    let url = place.on_postgres().context("no PostgreSQL")?.admin_url();
    let administrator = std::sync::Mutex::new(PgConnection::establish(&url)?);
    let others = |what: String| -> Result<i64> {
        let mut administrator = administrator.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        Ok(sql_query(what).get_result::<Sessions>(&mut *administrator)?.sessions)
    };
    let ended = others(format!("SELECT count(pg_terminate_backend(pid)) AS sessions {OTHERS}"))?;
    ensure!(ended >= CONNECTIONS.try_into()?, "{ended} sessions");
    eventually("the sessions to end", || async {
        Ok(others(format!("SELECT count(*) AS sessions {OTHERS}"))? == 0)
    })
    .await
}

async fn read(postgres: &Postgres) -> Result<i32, DatabaseError> {
    let read = |connection: &mut PgConnection| {
        Ok(diesel::select(diesel::dsl::sql::<Integer>("1")).get_result(connection)?)
    };
    postgres.run(read).await
}

async fn backend(postgres: &Postgres) -> Result<i32, DatabaseError> {
    let query = "SELECT pg_backend_pid() AS number";
    postgres.run(move |connection| Ok(sql_query(query).get_result::<Row>(connection)?.number)).await
}
