//! Removal of expired data.

use assay_contracts::retention::TOMBSTONE_RETENTION_MILLIS;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::{Connection as _, PRUNE_BATCH, RETENTION_MILLIS};
use assay_platform::db::idempotency::Connection as _;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::dsl::{exists, not};
use diesel::prelude::*;

use super::Connection;
use super::messages::erasure;
use super::schema::{deliveries, endpoints, retractions};

/// Maximum number of rows per statement.
const MAX_ROWS: i64 = 500;

/// Retractions younger than this are applied again: they may have missed a message that was enqueued concurrently.
const REAPPLY_MILLIS: i64 = 2 * 24 * 60 * 60 * 1_000;

pub fn prune(connection: &mut Connection, cutoff: Timestamp, now: Timestamp) -> Result<usize, DatabaseError> {
    let mut count = remove_expired(connection, cutoff)?;
    count += remove_deleted_endpoints(connection)?;
    count += remove_expired_secrets(connection, now)?;
    count += erase_retracted(connection, now)?;
    count += connection.prune_events(now.plus_millis(-RETENTION_MILLIS), PRUNE_BATCH)?;
    count += connection.prune_recorded_responses(now)?;
    Ok(count)
}

fn remove_expired(connection: &mut Connection, cutoff: Timestamp) -> Result<usize, DatabaseError> {
    let expired: Vec<StoredId> = deliveries::table
        .select(deliveries::id)
        .filter(deliveries::created_at.lt(cutoff.as_millis()))
        .order(deliveries::created_at)
        .limit(MAX_ROWS)
        .load(connection)?;
    remove(connection, expired)
}

fn remove_deleted_endpoints(connection: &mut Connection) -> Result<usize, DatabaseError> {
    let deleted = endpoints::table.select(endpoints::id).filter(endpoints::deleted_at.is_not_null());
    let orphans: Vec<StoredId> = deliveries::table
        .select(deliveries::id)
        .filter(deliveries::endpoint_id.eq_any(deleted))
        .order(deliveries::id)
        .limit(MAX_ROWS)
        .load(connection)?;
    let removed_messages = remove(connection, orphans)?;
    let has_messages = exists(deliveries::table.filter(deliveries::endpoint_id.eq(endpoints::id)));
    let without_messages: Vec<StoredId> = endpoints::table
        .select(endpoints::id)
        .filter(endpoints::deleted_at.is_not_null())
        .filter(not(has_messages))
        .order(endpoints::id)
        .limit(MAX_ROWS)
        .load(connection)?;
    let removed_endpoints = diesel::delete(endpoints::table.filter(endpoints::id.eq_any(without_messages)))
        .execute(connection)?;
    Ok(removed_messages + removed_endpoints)
}

fn remove(connection: &mut Connection, ids: Vec<StoredId>) -> Result<usize, DatabaseError> {
    Ok(diesel::delete(deliveries::table.filter(deliveries::id.eq_any(ids))).execute(connection)?)
}

fn remove_expired_secrets(connection: &mut Connection, now: Timestamp) -> Result<usize, DatabaseError> {
    Ok(diesel::update(endpoints::table.filter(endpoints::previous_secret_until.le(now.as_millis())))
        .set((
            endpoints::previous_secret.eq(None::<String>),
            endpoints::previous_secret_until.eq(None::<i64>),
        ))
        .execute(connection)?)
}

fn erase_retracted(connection: &mut Connection, now: Timestamp) -> Result<usize, DatabaseError> {
    let recent = retractions::table
        .select(retractions::ticket_id.nullable())
        .filter(retractions::deleted_at.gt(now.plus_millis(-REAPPLY_MILLIS).as_millis()));
    let erased = diesel::update(deliveries::table.filter(deliveries::ticket_id.eq_any(recent)))
        .filter(deliveries::payload.is_not_null())
        .set(erasure())
        .execute(connection)?;
    let expired = retractions::table
        .filter(retractions::deleted_at.lt(now.plus_millis(-TOMBSTONE_RETENTION_MILLIS).as_millis()));
    Ok(erased + diesel::delete(expired).execute(connection)?)
}
