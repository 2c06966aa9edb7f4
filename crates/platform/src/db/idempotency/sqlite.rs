//! Idempotency records in SQLite. Every function runs inside the caller's transaction.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, SmallInt, Text};
use diesel::sqlite::SqliteConnection;

use super::{
    DatabaseError, Fingerprint, IdempotencyKey, KeyReuse, PRUNE_BATCH, Record, StoredRow, expiry_cutoff,
    stored_status,
};
use crate::db::static_sql;

/// Overwrites a record that has expired but is not pruned yet.
const STORE: &str = "
    INSERT OR REPLACE INTO idempotency_keys
           (organization_id, key, fingerprint, status, location, body, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)";

const FIND: &str = "
    SELECT fingerprint, status, location, body FROM idempotency_keys
    WHERE organization_id = ? AND key = ? AND created_at > ?";

const DELETE: &str = "DELETE FROM idempotency_keys WHERE organization_id = ? AND key = ?";

const PRUNE: &str = "
    DELETE FROM idempotency_keys WHERE (organization_id, key) IN
    (SELECT organization_id, key FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ?)";

impl super::Connection for SqliteConnection {
    fn find_key(
        &mut self,
        organization_id: OrganizationId,
        key: &IdempotencyKey,
        fingerprint: &Fingerprint,
        now: Timestamp,
    ) -> Result<Option<KeyReuse>, DatabaseError> {
        let row: Option<StoredRow> = static_sql(FIND)
            .bind::<Text, _>(organization_id.to_string())
            .bind::<Text, _>(key.as_str())
            .bind::<BigInt, _>(expiry_cutoff(now))
            .get_result(self)
            .optional()?;
        row.map(|row| row.into_key_reuse(fingerprint)).transpose()
    }

    fn store_keys(
        &mut self,
        records: &[Record],
        now: Timestamp,
    ) -> Result<Vec<Option<KeyReuse>>, DatabaseError> {
        records.iter().map(|record| store_one(self, record, now)).collect()
    }

    fn delete_keys(&mut self, keys: &[(OrganizationId, &IdempotencyKey)]) -> Result<(), DatabaseError> {
        for (organization_id, key) in keys {
            static_sql(DELETE)
                .bind::<Text, _>(organization_id.to_string())
                .bind::<Text, _>(key.as_str())
                .execute(self)?;
        }
        Ok(())
    }

    fn prune_keys(&mut self, now: Timestamp) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(PRUNE_BATCH).unwrap_or(i64::MAX);
        Ok(static_sql(PRUNE).bind::<BigInt, _>(expiry_cutoff(now)).bind::<BigInt, _>(limit).execute(self)?)
    }
}

/// Check-then-insert is safe: SQLite has one writer at a time.
fn store_one(
    connection: &mut SqliteConnection,
    record: &Record,
    now: Timestamp,
) -> Result<Option<KeyReuse>, DatabaseError> {
    let reuse = super::find(connection, record.organization_id, &record.key, &record.fingerprint, now)?;
    if reuse.is_some() {
        return Ok(reuse);
    }
    static_sql(STORE)
        .bind::<Text, _>(record.organization_id.to_string())
        .bind::<Text, _>(record.key.as_str())
        .bind::<Binary, _>(record.fingerprint.as_bytes().as_slice())
        .bind::<SmallInt, _>(stored_status(&record.response)?)
        .bind::<Nullable<Text>, _>(record.response.location.as_deref())
        .bind::<Text, _>(&record.response.body)
        .bind::<BigInt, _>(now.as_millis())
        .execute(connection)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::{MIGRATIONS, RETENTION_MILLIS, RecordedResponse, delete, prune, store};
    use super::*;
    use crate::db::{Database, DatabaseSettings, Migrations};

    static ALL: &[Migrations] = &[MIGRATIONS];
    const NOW: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

    async fn in_transaction<T: Send + 'static>(
        work: impl FnOnce(&mut SqliteConnection) -> Result<T, DatabaseError> + Send + 'static,
    ) -> T {
        let folder = tempfile::tempdir().unwrap();
        let settings = DatabaseSettings {
            database_url: format!("sqlite:{}", folder.path().join("test.db").display()).into(),
            database_pool_size: 2,
        };
        let database = Database::open(&settings, "test").unwrap();
        database.migrate(ALL).await.unwrap();
        let Database::Sqlite(sqlite) = database else { panic!("not SQLite") };
        sqlite.write(work).await.unwrap()
    }

    fn record(organization_id: OrganizationId, body: &[u8], response: &str) -> Record {
        Record {
            organization_id,
            key: IdempotencyKey::parse(b"key-1").unwrap(),
            fingerprint: Fingerprint::of(body),
            response: RecordedResponse {
                status: 201,
                location: Some("/v1/x".to_owned()),
                body: response.to_owned(),
            },
        }
    }

    #[tokio::test]
    async fn same_body_replays_first_response_and_other_body_conflicts() {
        let (organization, other) = (crate::runtime::new_id(), crate::runtime::new_id());
        let first = record(organization, b"body", "first");
        let expected = KeyReuse::Replay(first.response.clone());
        in_transaction(move |connection| {
            assert_eq!(store(connection, &[first], NOW)?, [None]);
            let again = record(organization, b"body", "second");
            assert_eq!(store(connection, &[again], NOW)?, [Some(expected)]);
            let changed = record(organization, b"another body", "third");
            assert_eq!(store(connection, &[changed], NOW)?, [Some(KeyReuse::Conflict)]);
            let foreign = record(other, b"another body", "fourth");
            assert_eq!(store(connection, &[foreign], NOW)?, [None]);
            Ok(())
        })
        .await;
    }

    #[tokio::test]
    async fn key_is_free_after_24_hours() {
        let organization = crate::runtime::new_id();
        in_transaction(move |connection| {
            let first = record(organization, b"body", "first");
            store(connection, std::slice::from_ref(&first), NOW)?;
            let later = NOW.plus_millis(RETENTION_MILLIS);
            let second = record(organization, b"another body", "second");
            assert_eq!(store(connection, &[second], later)?, [None]);
            Ok(())
        })
        .await;
    }

    #[tokio::test]
    async fn deleted_key_is_free() {
        let organization = crate::runtime::new_id();
        in_transaction(move |connection| {
            let first = record(organization, b"body", "first");
            store(connection, std::slice::from_ref(&first), NOW)?;
            delete(connection, &[(organization, &first.key)])?;
            let second = record(organization, b"another body", "second");
            assert_eq!(store(connection, &[second], NOW)?, [None]);
            Ok(())
        })
        .await;
    }

    #[tokio::test]
    async fn prune_deletes_only_expired_records() {
        let organization = crate::runtime::new_id();
        in_transaction(move |connection| {
            store(connection, &[record(organization, b"body", "first")], NOW)?;
            assert_eq!(prune(connection, NOW.plus_millis(RETENTION_MILLIS - 1))?, 0);
            assert_eq!(prune(connection, NOW.plus_millis(RETENTION_MILLIS))?, 1);
            Ok(())
        })
        .await;
    }
}
