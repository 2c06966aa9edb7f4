//! Partitions created by several processes at once, and rows that move out of the default partition.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_contracts::time::Timestamp;
use assay_platform::db::{
    Database, DatabaseError, Migrations, PartitionedTable, Postgres, ensure_monthly_partitions,
    maintain_partitions, move_portion, prepare_partitions,
};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, eventually, number_on};
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};
use uuid::Uuid;

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];
const TABLE: PartitionedTable = PartitionedTable { name: "things", key: "id" };
const DEFINITION: &str = "CREATE TABLE things (id uuid PRIMARY KEY) PARTITION BY RANGE (id); \
                          CREATE TABLE things_default PARTITION OF things DEFAULT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partition_created_concurrently_is_found() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let mut other = PgConnection::establish(database.postgres_database().context("no PostgreSQL")?.url())?;
    other.batch_execute(&format!("SET search_path TO {SCHEMA}; {DEFINITION}"))?;
    let lock = "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('assay partitions of things', 0))";
    other.batch_execute(lock)?;
    let waiting = create_partitions(&database);
    let meanwhile = async {
        // `waiting` has found the first partition missing, and waits for the lock to create it.
        session_waits(&database, "advisory").await?;
        ensure_monthly_partitions(&mut other, TABLE, now(), -1..=0)?;
        Ok::<(), anyhow::Error>(other.batch_execute("COMMIT")?)
    };
    let (waited, created) = tokio::join!(waiting, meanwhile);
    created?;
    waited
}

/// A query planned before the partition is attached must not look for the row in the default partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_moved_into_its_partition_is_always_found() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let mut mover = PgConnection::establish(database.postgres_database().context("no PostgreSQL")?.url())?;
    mover.batch_execute(&format!("SET search_path TO {SCHEMA}; {DEFINITION}"))?;
    let id: Uuid = new_id();
    sql_query("INSERT INTO things VALUES ($1)").bind::<diesel::sql_types::Uuid, _>(id).execute(&mut mover)?;
    AnsiTransactionManager::begin_transaction(&mut mover)?;
    assert!(move_portion(&mut mover, TABLE)?);

    let reading = count(&database, id);
    let meanwhile = async {
        session_waits(&database, "relation").await?;
        Ok::<(), anyhow::Error>(AnsiTransactionManager::commit_transaction(&mut mover)?)
    };
    let (found, moved) = tokio::join!(reading, meanwhile);
    moved?;
    assert_eq!(found?, 1);
    Ok(())
}

const NOW: Timestamp = Timestamp::saturating_from_millis(1_795_305_600_000); // 2026-11-22
/// The time of a clock six months ahead.
const AHEAD: Timestamp = Timestamp::saturating_from_millis(1_810_857_600_000); // 2027-05-21
const STRAY_ROWS: i64 = 200_000;

/// `STRAY_ROWS` rows in 2027-05, a millisecond apart, in the default partition.
const STRAYS: &str = "
    INSERT INTO things (id, note)
    SELECT (lpad(to_hex(1810857600000 + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, repeat('x', 300)
      FROM generate_series(1, 200000) n";

const UUIDV7_AT: &str = "CREATE FUNCTION uuidv7_at(bigint) RETURNS uuid LANGUAGE sql AS $$ \
    SELECT (lpad(to_hex($1), 12, '0') || '7000' || substr(md5(random()::text), 1, 16))::uuid $$";

/// A table in whose default partition a clock that was six months ahead has left many rows.
async fn with_strays() -> Result<(ServiceDatabase, Postgres)> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    execute(&postgres, DEFINITION).await?;
    execute(&postgres, "ALTER TABLE things ADD note text NOT NULL DEFAULT ''").await?;
    execute(&postgres, STRAYS).await?;
    Ok((database, postgres))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_with_stray_rows_is_prepared_at_once() -> Result<()> {
    let (_database, postgres) = with_strays().await?;
    let began = Instant::now();
    for now in [NOW, AHEAD] {
        prepare_partitions(&postgres, TABLE, now).await?;
    }
    println!("prepared in {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, STRAY_ROWS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stray_rows_move_in_portions_beside_writers() -> Result<()> {
    let (_database, postgres) = with_strays().await?;
    execute(&postgres, UUIDV7_AT).await?;
    let written = maintain_beside_writer(&postgres, Duration::from_secs(2), async |written| {
        execute(&postgres, "INSERT INTO things VALUES (uuidv7_at(1795305600000))").await?;
        let rows = number(&postgres, "SELECT count(*) FROM things").await?;
        anyhow::ensure!(rows == STRAY_ROWS + written, "{rows} rows after {written} more");
        Ok(())
    })
    .await?;
    assert_eq!(number(&postgres, "SELECT count(DISTINCT id) FROM things").await?, STRAY_ROWS + written);
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    let largest_portion =
        "SELECT max(rows) FROM (SELECT count(*) AS rows FROM things WHERE note <> '' GROUP BY tableoid) p";
    let rows = number(&postgres, largest_portion).await?;
    // `PORTION_ROWS`.
    assert!(rows <= 20_000, "a portion had {rows} rows");
    // The whole month is covered, and created only once.
    prepare_partitions(&postgres, TABLE, AHEAD).await?;
    execute(&postgres, "INSERT INTO things SELECT uuidv7_at(1810857600000 + n) FROM generate_series(0, 800000000, 50000000) n").await?;
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    Ok(())
}

/// The process was killed between two portions, and the remaining rows were deleted before the next run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partly_moved_month_is_completed_without_rows() -> Result<()> {
    let (_database, postgres) = with_strays().await?;
    let moved: Result<bool, DatabaseError> = postgres.run(|connection| move_portion(connection, TABLE)).await;
    assert!(moved?);
    execute(&postgres, "DELETE FROM things_default").await?;
    maintain_partitions(&postgres, TABLE, AHEAD, 1).await?;
    execute(&postgres, "TRUNCATE things").await?;
    execute(&postgres, STRAYS).await?;
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    Ok(())
}

/// A table whose default partition has many rows of 2027-05, and those that the statements `other` add.
async fn with_large_default(other: &str) -> Result<(ServiceDatabase, Postgres)> {
    let rows = rows_of_large_default();
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    execute(&postgres, DEFINITION).await?;
    execute(&postgres, "ALTER TABLE things ADD note text NOT NULL DEFAULT ''").await?;
    let strays = "INSERT INTO things (id, note) SELECT uuidv7_at(MILLIS + n), repeat(md5(n::text), 48) \
                  FROM generate_series(1, ROWS) n";
    let strays = strays.replace("ROWS", &rows.to_string()).replace("MILLIS", &AHEAD.as_millis().to_string());
    execute(&postgres, UUIDV7_AT).await?;
    execute(&postgres, &strays).await?;
    execute(&postgres, other).await?;
    Ok((database, postgres))
}

/// Rows of a large default partition: more than 128 MiB.
#[allow(clippy::disallowed_methods, reason = "a larger run is asked for by the environment")]
fn rows_of_large_default() -> i64 {
    std::env::var("LARGE_DEFAULT_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(100_000)
}

const NO_OTHER_ROWS: &str = "SELECT 1";
const PARTITIONS_OF_STRAYS: &str = "SELECT count(DISTINCT tableoid) FROM things WHERE note <> ''";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_default_becomes_a_partition_beside_writers() -> Result<()> {
    let (_database, postgres) = with_large_default(NO_OTHER_ROWS).await?;
    let written = maintain_beside_writer(&postgres, Duration::from_secs(1), async |written| {
        // Rows of the present and of the wrong clock, which still runs: at first neither has a partition.
        let millis = if written % 2 == 0 { AHEAD.as_millis() + 1_000_000_000 } else { NOW.as_millis() };
        execute(&postgres, &format!("INSERT INTO things VALUES (uuidv7_at({millis}))")).await
    })
    .await?;
    let rows = rows_of_large_default() + written;
    assert_eq!(number(&postgres, "SELECT count(DISTINCT id) FROM things").await?, rows);
    assert_eq!(number(&postgres, PARTITIONS_OF_STRAYS).await?, 1, "no row has moved");
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    let constraints = "SELECT count(*) FROM pg_constraint WHERE conname = 'things_range'";
    assert_eq!(number(&postgres, constraints).await?, 0);
    // The partitions of later months begin where its range ends.
    for months in 1..6 {
        maintain_partitions(&postgres, TABLE, AHEAD.plus_millis(months * 30 * 86_400_000), 3).await?;
    }
    let later =
        "INSERT INTO things SELECT uuidv7_at(MILLIS + n * 86400000::bigint) FROM generate_series(0, 200) n";
    execute(&postgres, &later.replace("MILLIS", &AHEAD.as_millis().to_string())).await?;
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rows_of_another_gap_move_from_a_large_default() -> Result<()> {
    // Ten rows of 2020-09, and a partition of 2026-11, which separates them from the rows of 2027-05.
    let others = "INSERT INTO things SELECT uuidv7_at(1600000000000 + n) FROM generate_series(1, 10) n; \
                  CREATE TABLE things_2026_11 PARTITION OF things \
                  FOR VALUES FROM ('01a19467-e800-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000')";
    let (_database, postgres) = with_large_default(others).await?;
    maintain_partitions(&postgres, TABLE, NOW, 3).await?;
    assert_eq!(number(&postgres, PARTITIONS_OF_STRAYS).await?, 1, "no row of the large part has moved");
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_2020_09").await?, 10);
    assert_eq!(number(&postgres, "SELECT count(*) FROM things_default").await?, 0);
    assert_eq!(number(&postgres, "SELECT count(*) FROM things").await?, rows_of_large_default() + 10);
    Ok(())
}

/// A process was killed while it attached the default partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraint_that_a_killed_process_left_is_dropped() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let range = "ALTER TABLE things_default ADD CONSTRAINT things_range CHECK (id < uuidv7_at(0)) NOT VALID";
    for statement in [DEFINITION, UUIDV7_AT, range] {
        execute(&postgres, statement).await?;
    }
    let insert = "INSERT INTO things VALUES (uuidv7_at(1600000000000))";
    assert!(execute(&postgres, insert).await.is_err());
    prepare_partitions(&postgres, TABLE, NOW).await?;
    execute(&postgres, insert).await
}

/// Maintains the table while `write`, which gets the number of its call, is called again and again; returns that number. No
/// call may take as long as `limit`.
#[allow(clippy::print_stdout, reason = "prints measured figures")]
async fn maintain_beside_writer(
    postgres: &Postgres,
    limit: Duration,
    write: impl AsyncFn(i64) -> Result<()>,
) -> Result<i64> {
    let is_done = AtomicBool::new(false);
    let maintaining = async {
        let began = Instant::now();
        let maintained = maintain_partitions(postgres, TABLE, NOW, 3).await;
        is_done.store(true, Ordering::Relaxed);
        println!("maintained in {:?}", began.elapsed());
        maintained
    };
    let writing = async {
        let (mut written, mut longest) = (0, Duration::ZERO);
        while !is_done.load(Ordering::Relaxed) {
            let began = Instant::now();
            written += 1;
            write(written).await?;
            longest = longest.max(began.elapsed());
        }
        Ok::<_, anyhow::Error>((written, longest))
    };
    let (maintained, wrote) = tokio::join!(maintaining, writing);
    maintained?;
    let (written, longest) = wrote?;
    println!("{written} rows written meanwhile, the slowest took {longest:?}");
    assert!(written > 10 && longest < limit, "{written} {longest:?}");
    Ok(written)
}

/// Waits until a session waits for a lock of this kind.
async fn session_waits(database: &ServiceDatabase, kind: &str) -> Result<()> {
    let database = database.open(SCHEMA)?;
    let waiting = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = '{kind}' AND NOT granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    eventually("a session to wait", || async { Ok(number_on(&database, &waiting).await? > 0) }).await
}

async fn number(postgres: &Postgres, query: &str) -> Result<i64> {
    number_on(&Database::Postgres(postgres.clone()), query).await
}

/// Unlike `execute_on` several statements, and a deadlock is an error: these writers stand in for those of a service.
async fn execute(postgres: &Postgres, statement: &str) -> Result<()> {
    let statement = statement.to_owned();
    let run = move |connection: &mut PgConnection| {
        connection.batch_execute("SET statement_timeout = '60s'")?;
        Ok::<(), DatabaseError>(connection.batch_execute(&statement)?)
    };
    Ok(postgres.run_long(run).await?)
}

async fn count(database: &ServiceDatabase, id: Uuid) -> Result<usize> {
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let find = move |connection: &mut PgConnection| {
        let find = sql_query("SELECT id FROM things WHERE id = $1").bind::<diesel::sql_types::Uuid, _>(id);
        Ok::<usize, DatabaseError>(find.execute(connection)?)
    };
    Ok(postgres.run(find).await?)
}

async fn create_partitions(database: &ServiceDatabase) -> Result<()> {
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let created: Result<(), DatabaseError> =
        postgres.run(|connection| ensure_monthly_partitions(connection, TABLE, now(), -1..=0)).await;
    Ok(created?)
}
