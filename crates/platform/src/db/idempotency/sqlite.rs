//! Idempotency records in SQLite. Every function runs inside the caller's transaction.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, SmallInt, Text};
use diesel::sqlite::SqliteConnection;

use super::{
    Connection as _, DatabaseError, Fingerprint, IdempotencyKey, KeyReuse, PRUNE_BATCH, Record, StoredRow,
    expiry_cutoff, stored_status,
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

    fn prune_recorded_responses(&mut self, now: Timestamp) -> Result<usize, DatabaseError> {
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
    let reuse = connection.find_key(record.organization_id, &record.key, &record.fingerprint, now)?;
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
