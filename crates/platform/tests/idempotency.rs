//! Idempotency records on both databases, and on PostgreSQL while several transactions use them.

use anyhow::{Context, Result};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::idempotency::{
    self, Connection as _, Fingerprint, IdempotencyKey, KeyReuse, RETENTION_MILLIS, Record, RecordedResponse,
};
use assay_platform::db::{Database, DatabaseError, Migrations};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, eventually, number_on, on_both_databases};
use diesel::connection::{AnsiTransactionManager, SimpleConnection, TransactionManager};
use diesel::{Connection, PgConnection};

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static MIGRATIONS: [Migrations; 1] = [idempotency::MIGRATIONS];
const NOW: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

on_both_databases! { Records {
    same_body_replays_first_response_and_other_body_conflicts,
    key_is_free_after_24_hours,
    deleted_key_is_free,
    prune_deletes_only_expired_records,
} }

/// A database with the table of records.
struct Records {
    database: Database,
    _service_database: ServiceDatabase,
}

impl Records {
    async fn on_sqlite() -> Result<Self> {
        Self::at(ServiceDatabase::sqlite(SCHEMA, &MIGRATIONS).await?)
    }

    async fn on_postgres() -> Result<Self> {
        Self::at(ServiceDatabase::postgres(SCHEMA, &MIGRATIONS).await?)
    }

    fn at(service_database: ServiceDatabase) -> Result<Self> {
        Ok(Self { database: service_database.open(SCHEMA)?, _service_database: service_database })
    }
}

/// Runs a closure in one transaction. It is compiled for the connection of each database, which a function could not do.
macro_rules! in_transaction {
    ($records:ident, $work:expr) => {
        match &$records.database {
            Database::Postgres(database) => database.write::<(), DatabaseError, _>($work).await?,
            Database::Sqlite(database) => database.write::<(), DatabaseError, _>($work).await?,
        }
    };
}

async fn same_body_replays_first_response_and_other_body_conflicts(records: Records) -> Result<()> {
    let [organization, other]: [OrganizationId; 2] = [new_id(), new_id()];
    let first = record(organization, b"body", "first")?;
    let expected = KeyReuse::Replay(first.response.clone());
    let again = record(organization, b"body", "second")?;
    let changed = record(organization, b"another body", "third")?;
    let foreign = record(other, b"another body", "fourth")?;
    in_transaction!(records, move |connection| {
        assert_eq!(connection.store_keys(&[first], NOW)?, [None]);
        assert_eq!(connection.store_keys(&[again], NOW)?, [Some(expected)]);
        assert_eq!(connection.store_keys(&[changed], NOW)?, [Some(KeyReuse::Conflict)]);
        assert_eq!(connection.store_keys(&[foreign], NOW)?, [None]);
        Ok(())
    });
    Ok(())
}

async fn key_is_free_after_24_hours(records: Records) -> Result<()> {
    let organization = new_id();
    let first = record(organization, b"body", "first")?;
    let second = record(organization, b"another body", "second")?;
    in_transaction!(records, move |connection| {
        connection.store_keys(&[first], NOW)?;
        let later = NOW.plus_millis(RETENTION_MILLIS);
        assert_eq!(connection.store_keys(&[second], later)?, [None]);
        Ok(())
    });
    Ok(())
}

async fn deleted_key_is_free(records: Records) -> Result<()> {
    let organization = new_id();
    let first = record(organization, b"body", "first")?;
    let second = record(organization, b"another body", "second")?;
    in_transaction!(records, move |connection| {
        connection.store_keys(std::slice::from_ref(&first), NOW)?;
        connection.delete_keys(&[(organization, &first.key)])?;
        assert_eq!(connection.store_keys(&[second], NOW)?, [None]);
        Ok(())
    });
    Ok(())
}

async fn prune_deletes_only_expired_records(records: Records) -> Result<()> {
    let stored = record(new_id(), b"body", "first")?;
    in_transaction!(records, move |connection| {
        connection.store_keys(&[stored], NOW)?;
        assert_eq!(connection.prune_recorded_responses(NOW.plus_millis(RETENTION_MILLIS - 1))?, 0);
        assert_eq!(connection.prune_recorded_responses(NOW.plus_millis(RETENTION_MILLIS))?, 1);
        Ok(())
    });
    Ok(())
}

/// Maintenance has chosen the expired record when a request overwrites it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_key_claimed_again_during_maintenance_is_kept() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &MIGRATIONS).await?;
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    let mut record = record(new_id(), b"{}", "{}")?;
    record.response.location = None;
    let expired = record.clone();
    let long_ago = now().plus_millis(-RETENTION_MILLIS);
    postgres.run(move |connection| connection.store_keys(&[expired], long_ago)).await?;

    let mut request = PgConnection::establish(database.postgres_database().context("no PostgreSQL")?.url())?;
    request.batch_execute(&format!("SET search_path TO {SCHEMA}"))?;
    AnsiTransactionManager::begin_transaction(&mut request)?;
    assert_eq!(request.store_keys(std::slice::from_ref(&record), now())?, [None]);

    let maintenance = postgres.run(|connection| connection.prune_recorded_responses(now()));
    let meanwhile = async {
        let database = database.open(SCHEMA)?;
        let waiting = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) \
                       WHERE datname = current_database() AND locktype = 'transactionid' AND NOT granted";
        let is_waiting = || async { Ok(number_on(&database, waiting).await? > 0) };
        eventually("maintenance to wait for the request", is_waiting).await?;
        Ok::<(), anyhow::Error>(AnsiTransactionManager::commit_transaction(&mut request)?)
    };
    let (pruned, committed) = tokio::join!(maintenance, meanwhile);
    committed?;
    assert_eq!(pruned?, 0);
    let kept = postgres.run(move |connection| {
        connection.find_key(record.organization_id, &record.key, &record.fingerprint, now())
    });
    assert!(kept.await?.is_some());
    Ok(())
}

fn record(organization_id: OrganizationId, body: &[u8], response: &str) -> Result<Record> {
    Ok(Record {
        organization_id,
        key: IdempotencyKey::parse(b"key-1")?,
        fingerprint: Fingerprint::of(body),
        response: RecordedResponse {
            status: 201,
            location: Some("/v1/x".to_owned()),
            body: response.to_owned(),
        },
    })
}
