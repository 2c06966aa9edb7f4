//! Deletion and expiry of conversations.

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox;
use assay_platform::db::{DatabaseError, static_sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::domain::{Participant, RetentionCutoff, TicketDeletion};
use crate::store::rows::{DeletionRow, RemovedRow, deletion_times};

/// Locks the row until the commit, so that only one of two concurrent deletions succeeds.
const DELETE_CONVERSATION: &str = "
    DELETE FROM conversations WHERE id = $1 AND organization_id = $2
    RETURNING id::text, external_id, source, source_account_id, started_at, ended_at, created_at,
              agents::text AS agents, messages::text AS messages, packed";

const DELETE_EXPIRED: &str = "DELETE FROM expired_tickets WHERE ticket_id = $1 AND organization_id = $2";

const INSERT_EXPIRED: &str =
    "INSERT INTO expired_tickets (ticket_id, organization_id) SELECT id, $2 FROM unnest($1) AS id";

/// Tickets whose evaluations have expired, too.
const FORGET_EXPIRED: &str = "
    DELETE FROM expired_tickets WHERE ticket_id IN
    (SELECT ticket_id FROM expired_tickets WHERE organization_id = $1 AND ticket_id < $2 ORDER BY ticket_id LIMIT $3)";

const INSERT_DELETION: &str =
    "INSERT INTO deletions (ticket_id, organization_id, deleted_at) VALUES ($1, $2, $3)";

const FIND_DELETIONS: &str = "
    SELECT ticket_id::text, organization_id::text, deleted_at FROM deletions
    WHERE ticket_id = ANY ($1) ORDER BY ticket_id LIMIT $2";

/// Locks the rows in the same order as imports do. A name that a later message has changed is kept.
const DELETE_NAMES: &str = "
    DELETE FROM participants USING (
        SELECT organization_id, identity_sha256 FROM participants
        WHERE organization_id = $1 AND (identity_sha256, named_at, name) IN (SELECT * FROM unnest($2, $3, $4))
        ORDER BY organization_id, identity_sha256 FOR UPDATE) AS gone
    WHERE participants.organization_id = gone.organization_id
      AND participants.identity_sha256 = gone.identity_sha256";

/// The last condition enables partition pruning.
const EXPIRE: &str = "
    DELETE FROM conversations
    WHERE id = ANY (ARRAY (SELECT id FROM conversations WHERE organization_id = $1 AND id < $2 ORDER BY id LIMIT $3))
      AND organization_id = $1 AND id < $2
    RETURNING id::text, external_id, source, source_account_id, started_at, ended_at, created_at,
              agents::text AS agents, messages::text AS messages, packed";

const FORGET_DELETIONS: &str = "
    DELETE FROM deletions WHERE ticket_id IN
    (SELECT ticket_id FROM deletions WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2)";

/// Must run inside a transaction. False when the organization has no such ticket.
pub(super) fn delete_ticket(
    connection: &mut PgConnection,
    deletion: &TicketDeletion,
) -> Result<bool, DatabaseError> {
    let row: Option<RemovedRow> = static_sql(DELETE_CONVERSATION)
        .bind::<SqlUuid, _>(deletion.ticket_id.as_uuid())
        .bind::<SqlUuid, _>(deletion.organization_id.as_uuid())
        .get_result(connection)
        .optional()?;
    if row.is_none() && !delete_expired(connection, deletion)? {
        return Ok(false);
    }
    static_sql(INSERT_DELETION)
        .bind::<SqlUuid, _>(deletion.ticket_id.as_uuid())
        .bind::<SqlUuid, _>(deletion.organization_id.as_uuid())
        .bind::<BigInt, _>(deletion.deleted_at.as_millis())
        .execute(connection)?;
    let names = row.map(|row| row.participants(deletion.organization_id)).unwrap_or_default();
    delete_names(connection, deletion.organization_id, &names)?;
    outbox::enqueue(connection, std::slice::from_ref(&deletion.event), outbox::DirectDispatch::NONE)?;
    Ok(true)
}

/// Deletes a ticket whose transcript has expired; false when there is none.
fn delete_expired(connection: &mut PgConnection, deletion: &TicketDeletion) -> Result<bool, DatabaseError> {
    let deleted = static_sql(DELETE_EXPIRED)
        .bind::<SqlUuid, _>(deletion.ticket_id.as_uuid())
        .bind::<SqlUuid, _>(deletion.organization_id.as_uuid())
        .execute(connection)?;
    Ok(deleted > 0)
}

fn delete_names(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    names: &[Participant],
) -> Result<(), DatabaseError> {
    if names.is_empty() {
        return Ok(());
    }
    let identities: Vec<&[u8]> = names.iter().map(|named| named.identity.as_slice()).collect();
    let times: Vec<i64> = names.iter().map(|named| named.named_at.as_millis()).collect();
    let texts: Vec<&str> = names.iter().map(|named| named.name.as_str()).collect();
    static_sql(DELETE_NAMES)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .bind::<Array<Binary>, _>(identities)
        .bind::<Array<BigInt>, _>(times)
        .bind::<Array<Text>, _>(texts)
        .execute(connection)?;
    Ok(())
}

pub(super) fn find_deletions(
    connection: &mut PgConnection,
    ids: &[TicketId],
) -> Result<Vec<(OrganizationId, TicketId, Timestamp)>, DatabaseError> {
    let uuids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let rows: Vec<DeletionRow> = static_sql(FIND_DELETIONS)
        .bind::<Array<SqlUuid>, _>(uuids)
        .bind::<BigInt, _>(i64::try_from(ids.len()).unwrap_or(i64::MAX))
        .load(connection)?;
    deletion_times(rows)
}

/// Must run inside a transaction.
pub(super) fn expire(
    connection: &mut PgConnection,
    cutoff: RetentionCutoff,
    limit: i64,
) -> Result<usize, DatabaseError> {
    let rows: Vec<RemovedRow> = static_sql(EXPIRE)
        .bind::<SqlUuid, _>(cutoff.organization_id.as_uuid())
        .bind::<SqlUuid, _>(cutoff.before.as_uuid())
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    let organization_id = cutoff.organization_id;
    let names: Vec<_> = rows.iter().flat_map(|row| row.participants(organization_id)).collect();
    delete_names(connection, organization_id, &names)?;
    let removed = rows.into_iter().map(RemovedRow::into_facts).collect::<Result<Vec<_>, _>>()?;
    let count = removed.len();
    let ids: Vec<Uuid> = removed.iter().map(|ticket| ticket.id.as_uuid()).collect();
    static_sql(INSERT_EXPIRED)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<SqlUuid, _>(organization_id.as_uuid())
        .execute(connection)?;
    if let Some(first_kept) = cutoff.first_with_kept_evaluation() {
        static_sql(FORGET_EXPIRED)
            .bind::<SqlUuid, _>(organization_id.as_uuid())
            .bind::<SqlUuid, _>(first_kept.as_uuid())
            .bind::<BigInt, _>(limit)
            .execute(connection)?;
    }
    let events = cutoff.events(removed).map_err(|error| DatabaseError::Corrupt(error.to_string()))?;
    outbox::enqueue(connection, &events, outbox::DirectDispatch::NONE)?;
    Ok(count)
}

pub(super) fn forget_deletions(
    connection: &mut PgConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(static_sql(FORGET_DELETIONS)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
