//! Idempotency records in PostgreSQL. Every function runs inside the caller's transaction.

use std::collections::HashSet;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, SmallInt, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::{
    DatabaseError, Fingerprint, IdempotencyKey, KeyReuse, PRUNE_BATCH, Record, StoredRow, expiry_cutoff,
    stored_status,
};
use crate::db::static_sql;

/// Overwrites a record that has expired but is not pruned yet.
const STORE: &str = "
    INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, location, body, created_at)
    SELECT organization_id, key, fingerprint, status, location, body, $7
    FROM unnest($1, $2, $3, $4, $5, $6)
         AS new (organization_id, key, fingerprint, status, location, body)
    ON CONFLICT (organization_id, key) DO UPDATE
       SET fingerprint = excluded.fingerprint, status = excluded.status, location = excluded.location,
           body = excluded.body, created_at = excluded.created_at
     WHERE idempotency_keys.created_at <= $8
    RETURNING organization_id, key";

const FIND: &str = "
    SELECT fingerprint, status, location, body FROM idempotency_keys
    WHERE organization_id = $1 AND key = $2 AND created_at > $3";

const DELETE: &str = "
    DELETE FROM idempotency_keys
    WHERE (organization_id, key) IN (SELECT organization_id, key FROM unnest($1, $2) AS deleted (organization_id, key))";

/// Skips a record that a concurrent request overwrites: the outer condition is checked again on the new version of the row
/// (PostgreSQL manual, Read Committed isolation level), a condition of the subquery is not.
const PRUNE: &str = "
    DELETE FROM idempotency_keys WHERE (organization_id, key) IN
    (SELECT organization_id, key FROM idempotency_keys WHERE created_at <= $1 ORDER BY created_at LIMIT $2)
    AND created_at <= $1";

#[derive(QueryableByName)]
struct StoredKey {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = Text)]
    key: String,
}

impl super::Connection for PgConnection {
    fn find_key(
        &mut self,
        organization_id: OrganizationId,
        key: &IdempotencyKey,
        fingerprint: &Fingerprint,
        now: Timestamp,
    ) -> Result<Option<KeyReuse>, DatabaseError> {
        let row: Option<StoredRow> = static_sql(FIND)
            .bind::<SqlUuid, _>(organization_id.as_uuid())
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
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let stored = insert(self, records, now)?;
        let mut outcomes = Vec::with_capacity(records.len());
        for record in records {
            if stored.contains(&(record.organization_id.as_uuid(), record.key.as_str().to_owned())) {
                outcomes.push(None);
                continue;
            }
            let reuse = self.find_key(record.organization_id, &record.key, &record.fingerprint, now)?;
            // Should always be found: the insert has locked the row, and both statements have the same cutoff.
            let reuse = reuse.ok_or_else(|| {
                DatabaseError::Unavailable("an idempotency record expired just now".to_owned())
            })?;
            outcomes.push(Some(reuse));
        }
        Ok(outcomes)
    }

    fn delete_keys(&mut self, keys: &[(OrganizationId, &IdempotencyKey)]) -> Result<(), DatabaseError> {
        if keys.is_empty() {
            return Ok(());
        }
        let organizations: Vec<Uuid> = keys.iter().map(|(organization, _)| organization.as_uuid()).collect();
        let names: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
        static_sql(DELETE)
            .bind::<Array<SqlUuid>, _>(organizations)
            .bind::<Array<Text>, _>(names)
            .execute(self)?;
        Ok(())
    }

    fn prune_recorded_responses(&mut self, now: Timestamp) -> Result<usize, DatabaseError> {
        let limit = i64::try_from(PRUNE_BATCH).unwrap_or(i64::MAX);
        Ok(static_sql(PRUNE).bind::<BigInt, _>(expiry_cutoff(now)).bind::<BigInt, _>(limit).execute(self)?)
    }
}

fn insert(
    connection: &mut PgConnection,
    records: &[Record],
    now: Timestamp,
) -> Result<HashSet<(Uuid, String)>, DatabaseError> {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_unstable_by_key(|record| (record.organization_id, &record.key));
    let statuses =
        sorted.iter().map(|record| stored_status(&record.response)).collect::<Result<Vec<_>, _>>()?;
    let column = |of: fn(&Record) -> &str| sorted.iter().map(|record| of(record)).collect::<Vec<_>>();
    let organizations: Vec<Uuid> = sorted.iter().map(|record| record.organization_id.as_uuid()).collect();
    let fingerprints: Vec<&[u8]> =
        sorted.iter().map(|record| record.fingerprint.as_bytes().as_slice()).collect();
    let locations: Vec<Option<&str>> =
        sorted.iter().map(|record| record.response.location.as_deref()).collect();
    let stored: Vec<StoredKey> = static_sql(STORE)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Text>, _>(column(|record| record.key.as_str()))
        .bind::<Array<Binary>, _>(fingerprints)
        .bind::<Array<SmallInt>, _>(statuses)
        .bind::<Array<Nullable<Text>>, _>(locations)
        .bind::<Array<Text>, _>(column(|record| &record.response.body))
        .bind::<BigInt, _>(now.as_millis())
        .bind::<BigInt, _>(expiry_cutoff(now))
        .load(connection)?;
    Ok(stored.into_iter().map(|row| (row.organization_id, row.key)).collect())
}
