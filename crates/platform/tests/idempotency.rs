//! Idempotency records on PostgreSQL while several transactions use them.

use std::sync::Mutex;

use anyhow::{Context, Result};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::idempotency::{
    self, Fingerprint, IdempotencyKey, RETENTION_MILLIS, Record, RecordedResponse,
};
use assay_platform::db::{Database, DatabaseError, Migrations, Postgres};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, eventually};
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static MIGRATIONS: [Migrations; 1] = [idempotency::MIGRATIONS];

/// Maintenance has chosen the expired record when a request overwrites it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_key_claimed_again_during_maintenance_is_kept() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let record = record()?;
    store(&postgres, record.clone(), now().plus_millis(-RETENTION_MILLIS)).await?;

    let mut request = PgConnection::establish(database.postgres_database().context("no PostgreSQL")?.url())?;
    request.batch_execute(&format!("SET search_path TO {SCHEMA}"))?;
    AnsiTransactionManager::begin_transaction(&mut request)?;
    assert_eq!(idempotency::store(&mut request, std::slice::from_ref(&record), now())?, [None]);
    let request = Mutex::new(request);

    let maintenance = postgres.run(|connection| idempotency::prune(connection, now()));
    let meanwhile = async {
        let query = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) \
                     WHERE datname = current_database() AND locktype = 'transactionid' AND NOT granted";
        eventually("maintenance to wait for the request", || async {
            let mut request = request.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
            Ok(sql_query(query).execute(&mut *request)? > 0)
        })
        .await?;
        let mut request = request.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
        Ok::<(), anyhow::Error>(AnsiTransactionManager::commit_transaction(&mut *request)?)
    };
    let (pruned, committed) = tokio::join!(maintenance, meanwhile);
    committed?;
    assert_eq!(pruned?, 0);
    let kept = postgres.run(move |connection| {
        idempotency::find(connection, record.organization_id, &record.key, &record.fingerprint, now())
    });
    assert!(kept.await?.is_some());
    Ok(())
}

async fn store(postgres: &Postgres, record: Record, at: Timestamp) -> Result<(), DatabaseError> {
    postgres.run(move |connection| idempotency::store(connection, &[record], at)).await.map(drop)
}

fn record() -> Result<Record> {
    Ok(Record {
        organization_id: OrganizationId::from(new_id::<uuid::Uuid>()),
        key: IdempotencyKey::parse(b"key-1")?,
        fingerprint: Fingerprint::of(b"{}"),
        response: RecordedResponse { status: 202, location: None, body: "{}".to_owned() },
    })
}
