//! Deletion and expiry of evaluations.

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::{inbox, outbox};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use uuid::Uuid;

use crate::store::schema::postgres::evaluations;
use crate::store::{CONSUMER, DeletedEvaluation, new_deletions};

/// Writes a tombstone under the key of the evaluation, present or future: concurrent writers of the key wait for each other.
/// Its organization is the nil UUID, so that no read finds it.
const DELETE: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, scorer_version, created_at, deleted_at)
    VALUES ($1, $3, $3, 'failed', '', $4, $4)
    ON CONFLICT (ticket_id) DO UPDATE
       SET id = excluded.id, organization_id = excluded.organization_id, status = excluded.status, document = NULL,
           error_message = NULL, scorer_version = '', created_at = excluded.created_at,
           deleted_at = excluded.deleted_at
     WHERE evaluations.organization_id = $2";

/// The last condition allows partition pruning.
const REMOVE_OLDER: &str = "
    DELETE FROM evaluations
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluations WHERE organization_id = $1 AND ticket_id < $2
                                  ORDER BY ticket_id LIMIT $3))
      AND organization_id = $1 AND ticket_id < $2";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluations
    WHERE ticket_id = ANY (ARRAY (SELECT ticket_id FROM evaluations WHERE deleted_at IS NOT NULL AND deleted_at < $1
                                  ORDER BY deleted_at LIMIT $2))
      AND deleted_at IS NOT NULL";

/// Must run inside a transaction.
pub(super) fn delete(
    connection: &mut PgConnection,
    deletions: Vec<DeletedEvaluation>,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = deletions.iter().map(|deletion| deletion.event_id).collect();
    let fresh = inbox::record(connection, CONSUMER, &ids, now())?;
    let mut events = Vec::new();
    for deletion in new_deletions(deletions, fresh) {
        sql_query(DELETE)
            .bind::<SqlUuid, _>(deletion.ticket_id.as_uuid())
            .bind::<SqlUuid, _>(deletion.organization_id.as_uuid())
            .bind::<SqlUuid, _>(Uuid::nil())
            .bind::<BigInt, _>(deletion.deleted_at.as_millis())
            .execute(connection)?;
        events.push(deletion.deleted_event);
        events.extend(deletion.retracted_event);
    }
    outbox::enqueue(connection, &events, outbox::DirectDispatch::NONE)
}

pub(super) fn finished(
    connection: &mut PgConnection,
    tickets: &[TicketId],
) -> Result<HashSet<TicketId>, DatabaseError> {
    let tickets: Vec<Uuid> = tickets.iter().map(|id| id.as_uuid()).collect();
    let found: Vec<Uuid> = evaluations::table
        .filter(evaluations::ticket_id.eq_any(&tickets))
        .select(evaluations::ticket_id)
        .order(evaluations::ticket_id)
        .limit(i64::try_from(tickets.len()).unwrap_or(i64::MAX))
        .load(connection)?;
    Ok(found.into_iter().map(TicketId::from).collect())
}

pub(super) fn remove_older_than(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(REMOVE_OLDER)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<SqlUuid, _>(before.as_uuid())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn prune_tombstones(
    connection: &mut PgConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    let forget = sql_query(PRUNE_TOMBSTONES).bind::<BigInt, _>(before.as_millis());
    Ok(forget.bind::<BigInt, _>(limit).execute(connection)?)
}
