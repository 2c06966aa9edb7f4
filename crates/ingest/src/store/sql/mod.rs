//! The statements for both databases: `postgres.rs` and `sqlite.rs` each include this module, and define the functions
//! that differ between the databases (imported here from `super`).

pub mod accept;
pub mod refusals;
pub mod removal;
pub(super) mod schema;
pub mod transcripts;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{TicketCount, TicketReference};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
pub use assay_platform::db::idempotency;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use self::schema::{conversations, deletions, expired_tickets};
use super::Connection;

/// A missing subject becomes an empty one.
pub fn find_ticket(
    connection: &mut Connection,
    organization_id: OrganizationId,
    id: TicketId,
) -> Result<Option<Ticket>, DatabaseError> {
    let row: Option<(String, Option<String>, i64)> = conversations::table
        .select((conversations::external_id, conversations::subject, conversations::created_at))
        .filter(conversations::id.eq(StoredId::of(id)))
        .filter(conversations::organization_id.eq(StoredId::of(organization_id)))
        .first(connection)
        .optional()?;
    Ok(row.map(|(external_id, subject, created_at)| Ticket {
        id,
        external_id,
        subject: subject.unwrap_or_default(),
        created_at: Timestamp::saturating_from_millis(created_at),
    }))
}

pub fn count_tickets(
    connection: &mut Connection,
    organization_id: OrganizationId,
    since: TicketId,
    (from, to): (Option<Timestamp>, Option<Timestamp>),
    limit: u32,
) -> Result<TicketCount, DatabaseError> {
    let from = from.map_or(i64::MIN, Timestamp::as_millis);
    let to = to.map_or(i64::MAX, Timestamp::as_millis);
    // Selects no messages: they are large.
    let newest: Vec<(StoredId, i64)> = conversations::table
        .filter(conversations::organization_id.eq(StoredId::of(organization_id)))
        .filter(conversations::id.ge(StoredId::of(since)))
        .order(conversations::id.desc())
        .limit(i64::from(limit))
        .select((conversations::id, conversations::started_at))
        .load(connection)?;
    let count = newest.iter().filter(|(_, started_at)| (from..to).contains(started_at)).count() as u64;
    let oldest = newest.last().filter(|_| newest.len() >= limit as usize);
    Ok(TicketCount { count, since: oldest.map(|(id, _)| id.0.into()) })
}

pub fn is_expired(
    connection: &mut Connection,
    organization_id: OrganizationId,
    id: TicketId,
) -> Result<bool, DatabaseError> {
    let found: Option<StoredId> = expired_tickets::table
        .filter(expired_tickets::ticket_id.eq(StoredId::of(id)))
        .filter(expired_tickets::organization_id.eq(StoredId::of(organization_id)))
        .select(expired_tickets::ticket_id)
        .first(connection)
        .optional()?;
    Ok(found.is_some())
}

pub fn find_deletions(
    connection: &mut Connection,
    ids: &[TicketId],
) -> Result<Vec<(TicketReference, Timestamp)>, DatabaseError> {
    let rows: Vec<(StoredId, StoredId, i64)> = deletions::table
        .filter(deletions::ticket_id.eq_any(ids.iter().copied().map(StoredId::of)))
        .order(deletions::ticket_id)
        .limit(row_limit(ids.len()))
        .load(connection)?;
    let deletion = |(ticket, organization, deleted_at): (StoredId, StoredId, i64)| {
        let reference =
            TicketReference { organization_id: organization.0.into(), ticket_id: ticket.0.into() };
        (reference, Timestamp::saturating_from_millis(deleted_at))
    };
    Ok(rows.into_iter().map(deletion).collect())
}

fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
