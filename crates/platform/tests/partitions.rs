//! Partitions created by several processes at once.

use std::sync::Mutex;

use anyhow::{Context, Result};
use assay_platform::db::{Database, DatabaseError, Migrations, PartitionedTable, ensure_monthly_partitions};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, eventually};
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};
use uuid::Uuid;

/// Schema of any service: the test database needs an existing role.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];
const TABLE: PartitionedTable = PartitionedTable { name: "things", key: "id" };
const DEFINITION: &str = "CREATE TABLE things (id uuid PRIMARY KEY) PARTITION BY RANGE (id); \
                          CREATE TABLE things_default PARTITION OF things DEFAULT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partition_created_concurrently_is_found() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let mut other = PgConnection::establish(database.on_postgres().context("no PostgreSQL")?.url())?;
    other.batch_execute(&format!("SET search_path TO {SCHEMA}; {DEFINITION}"))?;
    let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('assay partitions of things', 0))";
    other.batch_execute(lock)?;
    let waiting = ensure(&database);
    let meanwhile = async {
        // It has checked for the first partition, and waits for the lock to create it.
        let query = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let other = Mutex::new(&mut other);
        eventually("the lock to be waited for", || async {
            let mut connection = other.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
            Ok(sql_query(query).execute(&mut **connection)? > 0)
        })
        .await?;
        let mut connection = other.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        ensure_monthly_partitions(&mut connection, TABLE, now(), 0)?;
        Ok::<(), anyhow::Error>(connection.batch_execute("COMMIT")?)
    };
    let (waited, created) = tokio::join!(waiting, meanwhile);
    created?;
    waited
}

/// A query planned before the partition is attached must not look for the row in the default partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_moved_into_its_partition_is_always_found() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let mut mover = PgConnection::establish(database.on_postgres().context("no PostgreSQL")?.url())?;
    mover.batch_execute(&format!("SET search_path TO {SCHEMA}; {DEFINITION}"))?;
    let id: Uuid = new_id();
    sql_query("INSERT INTO things VALUES ($1)").bind::<diesel::sql_types::Uuid, _>(id).execute(&mut mover)?;
    AnsiTransactionManager::begin_transaction(&mut mover)?;
    ensure_monthly_partitions(&mut mover, TABLE, now(), 0)?;
    let mover = Mutex::new(mover);

    let reading = count(&database, id);
    let meanwhile = async {
        let query = "SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        eventually("the reader to wait", || async {
            let mut mover = mover.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
            Ok(sql_query(query).execute(&mut *mover)? > 0)
        })
        .await?;
        let mut mover = mover.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        Ok::<(), anyhow::Error>(AnsiTransactionManager::commit_transaction(&mut *mover)?)
    };
    let (found, moved) = tokio::join!(reading, meanwhile);
    moved?;
    assert_eq!(found?, 1);
    Ok(())
}

async fn count(database: &ServiceDatabase, id: Uuid) -> Result<usize> {
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let find = move |connection: &mut PgConnection| {
        let find = sql_query("SELECT id FROM things WHERE id = $1").bind::<diesel::sql_types::Uuid, _>(id);
        Ok::<usize, DatabaseError>(find.execute(connection)?)
    };
    Ok(postgres.run(find).await?)
}

async fn ensure(database: &ServiceDatabase) -> Result<()> {
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let created: Result<(), DatabaseError> =
        postgres.run(|connection| ensure_monthly_partitions(connection, TABLE, now(), 0)).await;
    Ok(created?)
}
