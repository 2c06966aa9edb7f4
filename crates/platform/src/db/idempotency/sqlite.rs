//! Idempotency records in SQLite. Every function runs inside the caller's transaction.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, SmallInt, Text};
use diesel::sqlite::SqliteConnection;

use super::{
    DatabaseError, Earlier, Fingerprint, IdempotencyKey, PRUNE_BATCH, Record, StoredRow, expiry,
    stored_status,
};
use crate::db::static_sql;

/// A record that expired but was not removed yet is overwritten.
const STORE: &str = "
    INSERT OR REPLACE INTO idempotency_keys
           (organization_id, key, fingerprint, status, location, body, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)";

const FIND: &str = "
    SELECT fingerprint, status, location, body FROM idempotency_keys
    WHERE organization_id = ? AND key = ? AND created_at > ?";

const FORGET: &str = "DELETE FROM idempotency_keys WHERE organization_id = ? AND key = ?";

const PRUNE: &str = "
    DELETE FROM idempotency_keys WHERE (organization_id, key) IN
    (SELECT organization_id, key FROM idempotency_keys WHERE created_at <= ? ORDER BY created_at LIMIT ?)";

/// What is known of a key.
///
/// # Errors
/// When the database refuses.
pub fn find_sqlite(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    key: &IdempotencyKey,
    fingerprint: &Fingerprint,
    now: Timestamp,
) -> Result<Option<Earlier>, DatabaseError> {
    let row: Option<StoredRow> = static_sql(FIND)
        .bind::<Text, _>(organization_id.to_string())
        .bind::<Text, _>(key.as_str())
        .bind::<BigInt, _>(expiry(now))
        .get_result(connection)
        .optional()?;
    row.map(|row| row.compared_with(fingerprint)).transpose()
}

/// Claims the keys of `records`, which must all be different (by organization and key), and stores their answers.
/// Answers for each record, in the same order: `None` when it is stored now, else what its key was used for before.
///
/// # Errors
/// When the database refuses.
pub fn store_sqlite(
    connection: &mut SqliteConnection,
    records: &[Record],
    now: Timestamp,
) -> Result<Vec<Option<Earlier>>, DatabaseError> {
    records.iter().map(|record| store_one(connection, record, now)).collect()
}

/// Looking first is safe: a transaction that writes is alone.
fn store_one(
    connection: &mut SqliteConnection,
    record: &Record,
    now: Timestamp,
) -> Result<Option<Earlier>, DatabaseError> {
    let earlier = find_sqlite(connection, record.organization_id, &record.key, &record.fingerprint, now)?;
    if earlier.is_some() {
        return Ok(earlier);
    }
    static_sql(STORE)
        .bind::<Text, _>(record.organization_id.to_string())
        .bind::<Text, _>(record.key.as_str())
        .bind::<Binary, _>(record.fingerprint.as_bytes().as_slice())
        .bind::<SmallInt, _>(stored_status(&record.answer)?)
        .bind::<Nullable<Text>, _>(record.answer.location.as_deref())
        .bind::<Text, _>(&record.answer.body)
        .bind::<BigInt, _>(now.as_millis())
        .execute(connection)?;
    Ok(None)
}

/// Takes back records that were stored in this transaction, for requests whose effect was refused.
///
/// # Errors
/// When the database refuses.
pub fn forget_sqlite(
    connection: &mut SqliteConnection,
    keys: &[(OrganizationId, &IdempotencyKey)],
) -> Result<(), DatabaseError> {
    for (organization_id, key) in keys {
        static_sql(FORGET)
            .bind::<Text, _>(organization_id.to_string())
            .bind::<Text, _>(key.as_str())
            .execute(connection)?;
    }
    Ok(())
}

/// Removes expired records, the oldest [`PRUNE_BATCH`] at most; answers how many.
///
/// # Errors
/// When the database refuses.
pub fn prune_sqlite(connection: &mut SqliteConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    let limit = i64::try_from(PRUNE_BATCH).unwrap_or(i64::MAX);
    Ok(static_sql(PRUNE).bind::<BigInt, _>(expiry(now)).bind::<BigInt, _>(limit).execute(connection)?)
}

#[cfg(test)]
mod tests {
    use super::super::{MIGRATIONS, RETENTION_MILLIS, StoredAnswer};
    use super::*;
    use crate::db::{Database, DatabaseSettings, Migrations};

    static ALL: &[Migrations] = &[MIGRATIONS];
    const NOW: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

    async fn within<T: Send + 'static>(
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

    fn record(organization_id: OrganizationId, body: &[u8], answer: &str) -> Record {
        Record {
            organization_id,
            key: IdempotencyKey::parse(b"key-1").unwrap(),
            fingerprint: Fingerprint::of(body),
            answer: StoredAnswer { status: 201, location: Some("/v1/x".to_owned()), body: answer.to_owned() },
        }
    }

    #[tokio::test]
    async fn the_first_answer_is_given_again_and_another_body_is_a_conflict() {
        let (organization, other) = (crate::runtime::new_id(), crate::runtime::new_id());
        let first = record(organization, b"body", "first");
        let expected = Earlier::SameRequest(first.answer.clone());
        within(move |connection| {
            assert_eq!(store_sqlite(connection, &[first], NOW)?, [None]);
            let again = record(organization, b"body", "second");
            assert_eq!(store_sqlite(connection, &[again], NOW)?, [Some(expected)]);
            let changed = record(organization, b"another body", "third");
            assert_eq!(store_sqlite(connection, &[changed], NOW)?, [Some(Earlier::OtherRequest)]);
            let foreign = record(other, b"another body", "fourth");
            assert_eq!(store_sqlite(connection, &[foreign], NOW)?, [None]);
            Ok(())
        })
        .await;
    }

    #[tokio::test]
    async fn a_key_is_free_again_after_24_hours_or_when_its_request_was_refused() {
        let organization = crate::runtime::new_id();
        within(move |connection| {
            let first = record(organization, b"body", "first");
            store_sqlite(connection, std::slice::from_ref(&first), NOW)?;
            let later = NOW.plus_millis(RETENTION_MILLIS);
            let second = record(organization, b"another body", "second");
            assert_eq!(store_sqlite(connection, &[second], later)?, [None]);
            forget_sqlite(connection, &[(organization, &first.key)])?;
            assert_eq!(store_sqlite(connection, &[first], later)?, [None]);
            Ok(())
        })
        .await;
    }

    #[tokio::test]
    async fn only_expired_records_are_removed() {
        let organization = crate::runtime::new_id();
        within(move |connection| {
            store_sqlite(connection, &[record(organization, b"body", "first")], NOW)?;
            assert_eq!(prune_sqlite(connection, NOW.plus_millis(RETENTION_MILLIS - 1))?, 0);
            assert_eq!(prune_sqlite(connection, NOW.plus_millis(RETENTION_MILLIS))?, 1);
            Ok(())
        })
        .await;
    }
}
