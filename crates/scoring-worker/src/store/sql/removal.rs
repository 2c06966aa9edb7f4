//! Deletion and expiry of evaluations. All functions run inside a transaction.

use std::collections::HashSet;

use assay_contracts::ids::{EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::Connection as _;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::{DatabaseError, StoredId, static_sql};
use assay_platform::runtime::now;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use uuid::Uuid;

use super::schema::evaluations;
use super::{Connection, IdType};
use crate::store::{CONSUMER, DeletedEvaluation};

/// Writes a tombstone under the key of the evaluation, existing or not: concurrent writers of the key wait for each other.
/// Its organization is the nil UUID, so that no read finds it. SQLite numbers `$1`, `$2`, … in the order of their first use.
const WRITE_TOMBSTONE: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, scorer_version, created_at, deleted_at)
    VALUES ($1, $2, $2, 'failed', '', $3, $3)
    ON CONFLICT (ticket_id) DO UPDATE
       SET id = excluded.id, organization_id = excluded.organization_id, status = excluded.status, document = NULL,
           error_message = NULL, scorer_version = '', created_at = excluded.created_at,
           deleted_at = excluded.deleted_at, given_up = FALSE
     WHERE evaluations.organization_id = $4";

pub fn delete(connection: &mut Connection, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError> {
    let ids: Vec<_> = deletions.iter().map(|deletion| deletion.event_id).collect();
    let unhandled = connection.record_events(CONSUMER, &ids, now())?;
    let mut events = Vec::new();
    for deletion in new_deletions(deletions, unhandled) {
        static_sql(WRITE_TOMBSTONE)
            .bind::<IdType, _>(StoredId::of(deletion.ticket_id))
            .bind::<IdType, _>(StoredId(Uuid::nil()))
            .bind::<BigInt, _>(deletion.deleted_at.as_millis())
            .bind::<IdType, _>(StoredId::of(deletion.organization_id))
            .execute(connection)?;
        events.push(deletion.deleted_event);
        events.extend(deletion.retracted_event);
    }
    connection.enqueue_events(&events, FastPathClaim::NONE)
}

/// The deletions of events that were not handled before, one for each event. Sorted by ticket, so that concurrent
/// transactions lock rows in the same order.
fn new_deletions(
    mut deletions: Vec<DeletedEvaluation>,
    mut unhandled: HashSet<EventId>,
) -> Vec<DeletedEvaluation> {
    deletions.retain(|deletion| unhandled.remove(&deletion.event_id));
    deletions.sort_by_key(|deletion| deletion.ticket_id);
    deletions
}

pub fn remove_older_than(
    connection: &mut Connection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: usize,
) -> Result<usize, DatabaseError> {
    let of_organization = evaluations::organization_id.eq(StoredId::of(organization_id));
    let oldest: Vec<StoredId> = evaluations::table
        .filter(of_organization.and(evaluations::ticket_id.lt(StoredId::of(before))))
        .select(evaluations::ticket_id)
        .order(evaluations::ticket_id)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .load(connection)?;
    let removed = evaluations::table.filter(evaluations::ticket_id.eq_any(oldest));
    Ok(diesel::delete(removed.filter(of_organization)).execute(connection)?)
}

pub fn prune_tombstones(
    connection: &mut Connection,
    before: Timestamp,
    limit: usize,
) -> Result<usize, DatabaseError> {
    let oldest: Vec<StoredId> = evaluations::table
        .filter(evaluations::deleted_at.lt(before.as_millis()))
        .select(evaluations::ticket_id)
        .order(evaluations::deleted_at)
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .load(connection)?;
    let removed = evaluations::table.filter(evaluations::ticket_id.eq_any(oldest));
    Ok(diesel::delete(removed.filter(evaluations::deleted_at.is_not_null())).execute(connection)?)
}
