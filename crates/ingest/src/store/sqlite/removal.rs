//! Deletion and expiry of conversations. All functions run inside a write transaction.

use assay_contracts::event::TicketFacts;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox;
use assay_platform::db::{DatabaseError, static_sql};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text};
use diesel::sqlite::SqliteConnection;

use super::TicketIdRow;
use crate::domain::{Participant, RetentionCutoff, TicketDeletion};
use crate::store::rows::{DeletionRow, RemovedRow, deletion_times};

/// Keeps the identity used after its conversation is removed.
const KEEP_IDENTITY: &str = "
    INSERT INTO used_identities (organization_id, identity_sha256, ticket_id)
    SELECT organization_id, identity_sha256, id FROM conversations WHERE id = ? AND organization_id = ?
    ON CONFLICT DO NOTHING";

const DELETE_CONVERSATION: &str = "
    DELETE FROM conversations WHERE id = ? AND organization_id = ?
    RETURNING id, external_id, source, source_account_id, started_at, ended_at, created_at, agents,
              messages, packed";

const DELETE_EXPIRED: &str = "DELETE FROM expired_tickets WHERE ticket_id = ? AND organization_id = ?";

const INSERT_EXPIRED: &str = "INSERT INTO expired_tickets (ticket_id, organization_id) VALUES (?, ?)";

/// Tickets whose evaluations have expired, too.
const FORGET_EXPIRED: &str = "
    DELETE FROM expired_tickets WHERE ticket_id IN
    (SELECT ticket_id FROM expired_tickets WHERE organization_id = ? AND ticket_id < ? ORDER BY ticket_id LIMIT ?)";

const INSERT_DELETION: &str =
    "INSERT INTO deletions (ticket_id, organization_id, deleted_at) VALUES (?, ?, ?)";

const FIND_DELETION: &str =
    "SELECT ticket_id, organization_id, deleted_at FROM deletions WHERE ticket_id = ?";

/// A name that a later message has changed is kept.
const DELETE_NAME: &str = "
    DELETE FROM participants WHERE organization_id = ? AND identity_sha256 = ? AND named_at = ? AND name = ?";

const FIND_EXPIRED: &str = "
    SELECT id FROM conversations WHERE organization_id = ? AND id < ? ORDER BY id LIMIT ?";

const FORGET_DELETIONS: &str = "
    DELETE FROM deletions WHERE ticket_id IN
    (SELECT ticket_id FROM deletions WHERE deleted_at < ? ORDER BY deleted_at LIMIT ?)";

/// False when the organization has no such ticket.
pub(super) fn delete_ticket(
    connection: &mut SqliteConnection,
    deletion: &TicketDeletion,
) -> Result<bool, DatabaseError> {
    if remove(connection, deletion.organization_id, deletion.ticket_id)?.is_none()
        && !delete_expired(connection, deletion)?
    {
        return Ok(false);
    }
    static_sql(INSERT_DELETION)
        .bind::<Text, _>(deletion.ticket_id.to_string())
        .bind::<Text, _>(deletion.organization_id.to_string())
        .bind::<BigInt, _>(deletion.deleted_at.as_millis())
        .execute(connection)?;
    outbox::enqueue(connection, std::slice::from_ref(&deletion.event), outbox::DirectDispatch::NONE)?;
    Ok(true)
}

/// Deletes a ticket whose transcript has expired; false when there is none.
fn delete_expired(
    connection: &mut SqliteConnection,
    deletion: &TicketDeletion,
) -> Result<bool, DatabaseError> {
    let deleted = static_sql(DELETE_EXPIRED)
        .bind::<Text, _>(deletion.ticket_id.to_string())
        .bind::<Text, _>(deletion.organization_id.to_string())
        .execute(connection)?;
    Ok(deleted > 0)
}

/// Removes a conversation and its display names; returns its ticket.
fn remove(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    ticket_id: TicketId,
) -> Result<Option<TicketFacts>, DatabaseError> {
    static_sql(KEEP_IDENTITY)
        .bind::<Text, _>(ticket_id.to_string())
        .bind::<Text, _>(organization_id.to_string())
        .execute(connection)?;
    let row: Option<RemovedRow> = static_sql(DELETE_CONVERSATION)
        .bind::<Text, _>(ticket_id.to_string())
        .bind::<Text, _>(organization_id.to_string())
        .get_result(connection)
        .optional()?;
    let Some(row) = row else { return Ok(None) };
    for named in row.participants(organization_id) {
        delete_name(connection, &named)?;
    }
    row.into_facts().map(Some)
}

fn delete_name(connection: &mut SqliteConnection, named: &Participant) -> Result<(), DatabaseError> {
    static_sql(DELETE_NAME)
        .bind::<Text, _>(named.organization_id.to_string())
        .bind::<Binary, _>(named.identity.as_slice())
        .bind::<BigInt, _>(named.named_at.as_millis())
        .bind::<Text, _>(&named.name)
        .execute(connection)?;
    Ok(())
}

pub(super) fn find_deletions(
    connection: &mut SqliteConnection,
    ids: &[TicketId],
) -> Result<Vec<(OrganizationId, TicketId, Timestamp)>, DatabaseError> {
    let mut rows: Vec<DeletionRow> = Vec::new();
    for id in ids {
        rows.extend(
            static_sql(FIND_DELETION).bind::<Text, _>(id.to_string()).load::<DeletionRow>(connection)?,
        );
    }
    deletion_times(rows)
}

pub(super) fn expire(
    connection: &mut SqliteConnection,
    cutoff: RetentionCutoff,
    limit: i64,
) -> Result<usize, DatabaseError> {
    let rows: Vec<TicketIdRow> = static_sql(FIND_EXPIRED)
        .bind::<Text, _>(cutoff.organization_id.to_string())
        .bind::<Text, _>(cutoff.before.to_string())
        .bind::<BigInt, _>(limit)
        .load(connection)?;
    let mut removed = Vec::with_capacity(rows.len());
    for row in rows {
        removed.extend(remove(connection, cutoff.organization_id, row.ticket_id()?)?);
    }
    let count = removed.len();
    for ticket in &removed {
        static_sql(INSERT_EXPIRED)
            .bind::<Text, _>(ticket.id.to_string())
            .bind::<Text, _>(cutoff.organization_id.to_string())
            .execute(connection)?;
    }
    if let Some(first_kept) = cutoff.first_with_kept_evaluation() {
        static_sql(FORGET_EXPIRED)
            .bind::<Text, _>(cutoff.organization_id.to_string())
            .bind::<Text, _>(first_kept.to_string())
            .bind::<BigInt, _>(limit)
            .execute(connection)?;
    }
    let events = cutoff.events(removed).map_err(|error| DatabaseError::Corrupt(error.to_string()))?;
    outbox::enqueue(connection, &events, outbox::DirectDispatch::NONE)?;
    Ok(count)
}

pub(super) fn forget_deletions(
    connection: &mut SqliteConnection,
    before: Timestamp,
    limit: i64,
) -> Result<usize, DatabaseError> {
    Ok(static_sql(FORGET_DELETIONS)
        .bind::<BigInt, _>(before.as_millis())
        .bind::<BigInt, _>(limit)
        .execute(connection)?)
}
