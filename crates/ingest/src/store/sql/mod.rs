//! The store for both databases: `postgres.rs` and `sqlite.rs` each include this module, and define the functions
//! that differ between the databases (imported here from `super`).

mod accept;
mod removal;
pub(super) mod schema;
mod transcripts;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{TicketCount, TicketReference, UnreadableTranscript};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::FastPathClaim;
use assay_platform::db::{DatabaseError, StoredId, idempotency};
use async_trait::async_trait;
use diesel::prelude::*;

use self::schema::{conversations, deletions, expired_tickets};
use super::{Connection, Database, concurrent_writers, maintain_partitions, prepare_partitions};
use crate::domain::{Import, ImportOutcome, RetentionCutoff, TicketDeletion};
use crate::store::{Store, StoredTranscripts};

pub struct SqlStore {
    database: Database,
}

impl SqlStore {
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn prepare_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        prepare_partitions(&self.database, now).await
    }

    async fn maintain_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        maintain_partitions(&self.database, now).await
    }

    async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        claim: FastPathClaim,
    ) -> Result<Vec<ImportOutcome>, DatabaseError> {
        self.database.write(move |tx| accept::accept_batch(tx, &imports, claim)).await
    }

    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError> {
        self.database.read(move |connection| find_ticket(connection, organization_id, id)).await
    }

    async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
        max_bytes: usize,
    ) -> Result<StoredTranscripts, DatabaseError> {
        self.database.read(move |tx| transcripts::read(tx, tickets, max_bytes)).await
    }

    async fn read_ticket_facts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<Vec<UnreadableTranscript>, DatabaseError> {
        self.database.read(move |tx| transcripts::read_facts(tx, &tickets)).await
    }

    async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError> {
        self.database.write(move |tx| removal::delete_ticket(tx, &deletion)).await
    }

    async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        let reference = TicketReference { organization_id, ticket_id: id };
        let found = self.database.read(move |connection| find_deletions(connection, &[id])).await?;
        let deletion = found.into_iter().find(|(ticket, _)| *ticket == reference);
        Ok(deletion.map(|(_, deleted_at)| deleted_at))
    }

    async fn is_expired(&self, organization_id: OrganizationId, id: TicketId) -> Result<bool, DatabaseError> {
        let (organization, id) = (StoredId::of(organization_id), StoredId::of(id));
        let query = expired_tickets::table
            .filter(expired_tickets::ticket_id.eq(id))
            .filter(expired_tickets::organization_id.eq(organization))
            .select(expired_tickets::ticket_id);
        let found: Option<StoredId> = self
            .database
            .read(move |connection| Ok::<_, DatabaseError>(query.first(connection).optional()?))
            .await?;
        Ok(found.is_some())
    }

    async fn count_tickets(
        &self,
        organization_id: OrganizationId,
        since: TicketId,
        period: (Option<Timestamp>, Option<Timestamp>),
        limit: u32,
    ) -> Result<TicketCount, DatabaseError> {
        self.database
            .read(move |connection| count_tickets(connection, organization_id, since, period, limit))
            .await
    }

    async fn expire(&self, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError> {
        self.database.write(move |tx| removal::expire(tx, cutoff, row_limit(limit))).await
    }

    async fn prune_expired_tickets(
        &self,
        organization_id: OrganizationId,
        first_kept: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        let limit = row_limit(limit);
        self.database
            .write(move |tx| removal::prune_expired_tickets(tx, organization_id, first_kept, limit))
            .await
    }

    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        self.database.write(move |tx| removal::prune_tombstones(tx, before, row_limit(limit))).await
    }

    async fn prune_idempotency_records(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.database.write(move |tx| idempotency::prune(tx, now)).await
    }

    fn concurrent_writers(&self, wanted: usize) -> usize {
        concurrent_writers(wanted)
    }
}

/// A missing subject becomes an empty one.
fn find_ticket(
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

fn count_tickets(
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

fn find_deletions(
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
