//! Deletion and expiry of conversations. All functions run inside a transaction.

use assay_contracts::event::TicketFacts;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::{Connection as _, FastPathClaim};
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::schema::{conversations, deletions, expired_tickets, participants};
use super::{Connection, row_limit};
use crate::domain::{Participant, RetentionCutoff, TicketDeletion};
use crate::store::rows::ConversationRow;

/// False when the organization has no such ticket.
pub fn delete_ticket(tx: &mut Connection, deletion: &TicketDeletion) -> Result<bool, DatabaseError> {
    let (organization_id, id) = (deletion.organization_id, StoredId::of(deletion.ticket_id));
    if remove(tx, organization_id, &[id])?.is_empty() && !delete_expired(tx, organization_id, id)? {
        return Ok(false);
    }
    diesel::insert_into(deletions::table)
        .values((
            deletions::ticket_id.eq(id),
            deletions::organization_id.eq(StoredId::of(organization_id)),
            deletions::deleted_at.eq(deletion.deleted_at.as_millis()),
        ))
        .execute(tx)?;
    tx.enqueue_events(std::slice::from_ref(&deletion.event), FastPathClaim::NONE)?;
    Ok(true)
}

/// Deletes a ticket whose transcript has expired; false when there is none.
fn delete_expired(
    tx: &mut Connection,
    organization_id: OrganizationId,
    id: StoredId,
) -> Result<bool, DatabaseError> {
    let expired = expired_tickets::table
        .filter(expired_tickets::ticket_id.eq(id))
        .filter(expired_tickets::organization_id.eq(StoredId::of(organization_id)));
    Ok(diesel::delete(expired).execute(tx)? > 0)
}

/// Removes conversations and their display names; returns the tickets that were found. Of two concurrent removals of a
/// conversation, the second waits for the first and finds nothing.
fn remove(
    tx: &mut Connection,
    organization_id: OrganizationId,
    ids: &[StoredId],
) -> Result<Vec<TicketFacts>, DatabaseError> {
    let removed = conversations::table
        .filter(conversations::id.eq_any(ids.iter().copied()))
        .filter(conversations::organization_id.eq(StoredId::of(organization_id)));
    let rows: Vec<ConversationRow> =
        diesel::delete(removed).returning(conversations::all_columns).get_results(tx)?;
    let mut names: Vec<Participant> = rows.iter().flat_map(ConversationRow::participants).collect();
    // Rows are locked in the same order as by imports.
    names.sort_by_key(|named| named.identity);
    for named in &names {
        delete_name(tx, named)?;
    }
    Ok(rows.into_iter().map(ConversationRow::into_removed_ticket).collect())
}

/// Deletes a display name, unless a message of another conversation has replaced it.
fn delete_name(tx: &mut Connection, named: &Participant) -> Result<(), DatabaseError> {
    let name = participants::table
        .filter(participants::organization_id.eq(StoredId::of(named.organization_id)))
        .filter(participants::identity_sha256.eq(named.identity.as_slice()))
        .filter(participants::named_at.eq(named.named_at.as_millis()))
        .filter(participants::name.eq(&named.name));
    diesel::delete(name).execute(tx)?;
    Ok(())
}

pub fn expire(tx: &mut Connection, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError> {
    let organization = StoredId::of(cutoff.organization_id);
    let ids: Vec<StoredId> = conversations::table
        .select(conversations::id)
        .filter(conversations::organization_id.eq(organization))
        .filter(conversations::id.lt(StoredId::of(cutoff.before)))
        .order(conversations::id)
        .limit(row_limit(limit))
        .load(tx)?;
    let removed = remove(tx, cutoff.organization_id, &ids)?;
    let count = removed.len();
    let first_kept = cutoff.first_with_kept_evaluation();
    for ticket in removed.iter().filter(|ticket| first_kept.is_none_or(|first| ticket.id >= first)) {
        diesel::insert_into(expired_tickets::table)
            .values((
                expired_tickets::ticket_id.eq(StoredId::of(ticket.id)),
                expired_tickets::organization_id.eq(organization),
            ))
            .execute(tx)?;
    }
    let events = cutoff.events(removed).map_err(|error| DatabaseError::Corrupt(error.to_string()))?;
    tx.enqueue_events(&events, FastPathClaim::NONE)?;
    Ok(count)
}

pub fn prune_expired_tickets(
    tx: &mut Connection,
    organization_id: OrganizationId,
    first_kept: TicketId,
    limit: usize,
) -> Result<usize, DatabaseError> {
    let ids: Vec<StoredId> = expired_tickets::table
        .select(expired_tickets::ticket_id)
        .filter(expired_tickets::organization_id.eq(StoredId::of(organization_id)))
        .filter(expired_tickets::ticket_id.lt(StoredId::of(first_kept)))
        .order(expired_tickets::ticket_id)
        .limit(row_limit(limit))
        .load(tx)?;
    let expired = expired_tickets::table.filter(expired_tickets::ticket_id.eq_any(ids));
    Ok(diesel::delete(expired).execute(tx)?)
}

pub fn prune_tombstones(
    tx: &mut Connection,
    before: Timestamp,
    limit: usize,
) -> Result<usize, DatabaseError> {
    let expired: Vec<StoredId> = deletions::table
        .select(deletions::ticket_id)
        .filter(deletions::deleted_at.lt(before.as_millis()))
        .order(deletions::deleted_at)
        .limit(row_limit(limit))
        .load(tx)?;
    Ok(diesel::delete(deletions::table.filter(deletions::ticket_id.eq_any(expired))).execute(tx)?)
}
