//! What is kept no longer. All inside the transaction of `Sqlite::write`.

use assay_contracts::retention::DELETIONS_REMEMBERED_MILLIS;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::{PRUNE_BATCH, RETENTION_MILLIS, forget_sqlite};
use assay_platform::db::{DatabaseError, idempotency};
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;

use super::messages::erasure;
use super::schema::{deliveries, endpoints, retractions};
use crate::store::record::StoredId;

/// Rows removed by one statement.
const ROWS: i64 = 500;

/// How far back retractions are gone over once more: an announcement that was taken in at the same time may have slipped by.
const SECOND_LOOK_MILLIS: i64 = 2 * 24 * 60 * 60 * 1_000;

pub(super) fn prune(
    connection: &mut SqliteConnection,
    before: Timestamp,
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    let mut count = remove_old(connection, before)?;
    count += remove_deleted(connection)?;
    count += forget_secrets(connection, now)?;
    count += erase_retracted(connection, now)?;
    count += forget_sqlite(connection, now.plus_millis(-RETENTION_MILLIS), PRUNE_BATCH)?;
    count += idempotency::prune_sqlite(connection, now)?;
    Ok(count)
}

fn remove_old(connection: &mut SqliteConnection, before: Timestamp) -> Result<usize, DatabaseError> {
    let old: Vec<StoredId> = deliveries::table
        .select(deliveries::id)
        .filter(deliveries::created_at.lt(before.as_millis()))
        .order(deliveries::created_at)
        .limit(ROWS)
        .load(connection)?;
    remove(connection, old)
}

fn remove_deleted(connection: &mut SqliteConnection) -> Result<usize, DatabaseError> {
    let deleted = endpoints::table.select(endpoints::id).filter(endpoints::deleted_at.is_not_null());
    let orphans: Vec<StoredId> = deliveries::table
        .select(deliveries::id)
        .filter(deliveries::endpoint_id.eq_any(deleted))
        .order(deliveries::id)
        .limit(ROWS)
        .load(connection)?;
    let removed = remove(connection, orphans)?;
    let has_messages = exists(deliveries::table.filter(deliveries::endpoint_id.eq(endpoints::id)));
    let empty: Vec<StoredId> = endpoints::table
        .select(endpoints::id)
        .filter(endpoints::deleted_at.is_not_null())
        .filter(not(has_messages))
        .order(endpoints::id)
        .limit(ROWS)
        .load(connection)?;
    let gone = diesel::delete(endpoints::table.filter(endpoints::id.eq_any(empty))).execute(connection)?;
    Ok(removed + gone)
}

fn remove(connection: &mut SqliteConnection, ids: Vec<StoredId>) -> Result<usize, DatabaseError> {
    Ok(diesel::delete(deliveries::table.filter(deliveries::id.eq_any(ids))).execute(connection)?)
}

fn forget_secrets(connection: &mut SqliteConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    Ok(diesel::update(endpoints::table.filter(endpoints::previous_secret_until.le(now.as_millis())))
        .set((
            endpoints::previous_secret.eq(None::<String>),
            endpoints::previous_secret_until.eq(None::<i64>),
        ))
        .execute(connection)?)
}

fn erase_retracted(connection: &mut SqliteConnection, now: Timestamp) -> Result<usize, DatabaseError> {
    let recent = retractions::table
        .select(retractions::ticket_id.nullable())
        .filter(retractions::deleted_at.gt(now.plus_millis(-SECOND_LOOK_MILLIS).as_millis()));
    let erased = diesel::update(deliveries::table.filter(deliveries::ticket_id.eq_any(recent)))
        .filter(deliveries::payload.is_not_null())
        .set(erasure())
        .execute(connection)?;
    let forgotten = retractions::table
        .filter(retractions::deleted_at.lt(now.plus_millis(-DELETIONS_REMEMBERED_MILLIS).as_millis()));
    Ok(erased + diesel::delete(forgotten).execute(connection)?)
}
