//! Idempotency records in PostgreSQL. Every function runs inside the caller's transaction.

use std::collections::HashSet;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, SmallInt, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::{
    DatabaseError, Earlier, Fingerprint, IdempotencyKey, PRUNE_BATCH, Record, StoredRow, expiry,
    stored_status,
};
use crate::db::static_sql;

/// A record that expired but was not removed yet is overwritten.
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

const FORGET: &str = "
    DELETE FROM idempotency_keys
    WHERE (organization_id, key) IN (SELECT organization_id, key FROM unnest($1, $2) AS gone (organization_id, key))";

const PRUNE: &str = "
    DELETE FROM idempotency_keys WHERE (organization_id, key) IN
    (SELECT organization_id, key FROM idempotency_keys WHERE created_at <= $1 ORDER BY created_at LIMIT $2)";

#[derive(QueryableByName)]
struct StoredKey {
    #[diesel(sql_type = SqlUuid)]
    organization_id: Uuid,
    #[diesel(sql_type = Text)]
    key: String,
}

/// What is known of a key.
///
/// # Errors
/// When the database refuses.
pub fn find_postgres(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    key: &IdempotencyKey,
    fingerprint: &Fingerprint,
    now: Timestamp,
) -> Result<Option<Earlier>, DatabaseError> {
    let row: Option<StoredRow> = static_sql(FIND)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<Text, _>(key.as_str())
        .bind::<BigInt, _>(expiry(now))
        .get_result(connection)
        .optional()?;
    row.map(|row| row.compared_with(fingerprint)).transpose()
}

/// Claims the keys of `records`, which must all be different (by organization and key), and stores their answers.
/// Answers for each record, in the same order: `None` when it is stored now, else what its key was used for before.
/// Waits for concurrent transactions that claim the same keys; keys are claimed in one order, so that such
/// transactions cannot block each other for ever as long as each makes this call once.
///
/// # Errors
/// When the database refuses.
pub fn store_postgres(
    connection: &mut PgConnection,
    records: &[Record],
    now: Timestamp,
) -> Result<Vec<Option<Earlier>>, DatabaseError> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let stored = insert(connection, records, now)?;
    let mut outcomes = Vec::with_capacity(records.len());
    for record in records {
        if stored.contains(&(record.organization_id.as_uuid(), record.key.as_str().to_owned())) {
            outcomes.push(None);
            continue;
        }
        let earlier =
            find_postgres(connection, record.organization_id, &record.key, &record.fingerprint, now)?;
        // Only a record that expires between two statements is not found; the caller may try again.
        let earlier = earlier
            .ok_or_else(|| DatabaseError::Unavailable("an idempotency record expired just now".to_owned()))?;
        outcomes.push(Some(earlier));
    }
    Ok(outcomes)
}

fn insert(
    connection: &mut PgConnection,
    records: &[Record],
    now: Timestamp,
) -> Result<HashSet<(Uuid, String)>, DatabaseError> {
    let mut sorted: Vec<&Record> = records.iter().collect();
    sorted.sort_unstable_by_key(|record| (record.organization_id, &record.key));
    let statuses =
        sorted.iter().map(|record| stored_status(&record.answer)).collect::<Result<Vec<_>, _>>()?;
    let column = |of: fn(&Record) -> &str| sorted.iter().map(|record| of(record)).collect::<Vec<_>>();
    let organizations: Vec<Uuid> = sorted.iter().map(|record| record.organization_id.as_uuid()).collect();
    let fingerprints: Vec<&[u8]> =
        sorted.iter().map(|record| record.fingerprint.as_bytes().as_slice()).collect();
    let locations: Vec<Option<&str>> =
        sorted.iter().map(|record| record.answer.location.as_deref()).collect();
    let stored: Vec<StoredKey> = static_sql(STORE)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Text>, _>(column(|record| record.key.as_str()))
        .bind::<Array<Binary>, _>(fingerprints)
        .bind::<Array<SmallInt>, _>(statuses)
        .bind::<Array<Nullable<Text>>, _>(locations)
        .bind::<Array<Text>, _>(column(|record| &record.answer.body))
        .bind::<BigInt, _>(now.as_millis())
        .bind::<BigInt, _>(expiry(now))
        .load(connection)?;
    Ok(stored.into_iter().map(|row| (row.organization_id, row.key)).collect())
}

/// Takes back records that were stored in this transaction, for requests whose effect was refused.
///
/// # Errors
/// When the database refuses.
pub fn forget_postgres(
    connection: &mut PgConnection,
    keys: &[(OrganizationId, &IdempotencyKey)],
) -> Result<(), DatabaseError> {
    if keys.is_empty() {
        return Ok(());
    }
    let organizations: Vec<Uuid> = keys.iter().map(|(organization, _)| organization.as_uuid()).collect();
    let names: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
    static_sql(FORGET)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Text>, _>(names)
        .execute(connection)?;
    Ok(())
}

/// Removes expired records, the oldest [`PRUNE_BATCH`] at most; answers how many.
///
/// # Errors
/// When the database refuses.
pub fn prune_postgres(connection: &mut PgConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    let limit = i64::try_from(PRUNE_BATCH).unwrap_or(i64::MAX);
    Ok(static_sql(PRUNE).bind::<BigInt, _>(expiry(now)).bind::<BigInt, _>(limit).execute(connection)?)
}
