//! Deletion and expiry of evaluations. All functions run inside the transaction of `Sqlite::write`.

use std::collections::HashSet;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::{inbox, outbox};
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Binary};
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use super::bytes;
use crate::store::schema::sqlite::evaluations;
use crate::store::{CONSUMER, DeletedEvaluation, new_deletions};

/// Writes a tombstone under the key of the evaluation, present or future. Its organization is the nil UUID, so that no read
/// finds it.
const DELETE: &str = "
    INSERT INTO evaluations (ticket_id, id, organization_id, status, scorer_version, created_at, deleted_at)
    VALUES (?1, ?3, ?3, 'failed', '', ?4, ?4)
    ON CONFLICT (ticket_id) DO UPDATE
       SET id = excluded.id, organization_id = excluded.organization_id, status = excluded.status, document = NULL,
           error_message = NULL, scorer_version = '', created_at = excluded.created_at,
           deleted_at = excluded.deleted_at
     WHERE evaluations.organization_id = ?2";

const REMOVE_OLDER: &str = "
    DELETE FROM evaluations WHERE ticket_id IN
    (SELECT ticket_id FROM evaluations WHERE organization_id = ? AND ticket_id < ? ORDER BY ticket_id LIMIT ?)";

const PRUNE_TOMBSTONES: &str = "
    DELETE FROM evaluations WHERE ticket_id IN
    (SELECT ticket_id FROM evaluations WHERE deleted_at IS NOT NULL AND deleted_at < ? ORDER BY deleted_at LIMIT ?)";

pub(super) fn delete(
    connection: &mut SqliteConnection,
    deletions: Vec<DeletedEvaluation>,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = deletions.iter().map(|deletion| deletion.event_id).collect();
    let fresh = inbox::record(connection, CONSUMER, &ids, now())?;
    let mut events = Vec::new();
    for deletion in new_deletions(deletions, fresh) {
        sql_query(DELETE)
            .bind::<Binary, _>(bytes(deletion.ticket_id))
            .bind::<Binary, _>(bytes(deletion.organization_id))
            .bind::<Binary, _>(bytes(Uuid::nil()))
            .bind::<BigInt, _>(deletion.deleted_at.as_millis())
            .execute(connection)?;
        events.push(deletion.deleted_event);
        events.extend(deletion.retracted_event);
    }
    outbox::enqueue(connection, &events, outbox::DirectDispatch::NONE)
}

pub(super) fn finished(
    connection: &mut SqliteConnection,
    tickets: &[TicketId],
) -> Result<HashSet<TicketId>, DatabaseError> {
    let mut finished = HashSet::new();
    for ticket in tickets {
        let found = evaluations::table
            .filter(evaluations::ticket_id.eq(bytes(*ticket)))
            .select(evaluations::ticket_id)
            .first::<Vec<u8>>(connection)
            .optional()?;
        finished.extend(found.map(|_| *ticket));
    }
    Ok(finished)
}

pub(super) fn remove_older_than(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    before: TicketId,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(REMOVE_OLDER)
        .bind::<Binary, _>(bytes(organization_id))
        .bind::<Binary, _>(bytes(before))
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}

pub(super) fn prune_tombstones(
    connection: &mut SqliteConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(sql_query(PRUNE_TOMBSTONES)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
