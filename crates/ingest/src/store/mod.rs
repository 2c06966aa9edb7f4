//! The store of conversations, shaped by the use cases. Its statements are written once (`sql`) and compiled for each
//! database: `on_database!` calls `postgres::f(connection, …)` or `sqlite::f(connection, …)`.

#[cfg(feature = "distributed")]
mod postgres;
mod rows;
mod sqlite;
mod transcripts;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{
    StoredTranscript, TicketCount, TicketReference, TicketWithoutTranscript, Transcripts,
};
use assay_contracts::refusal::ImportRefusal;
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::FastPathClaim;
use assay_platform::db::{Database, DatabaseError, on_database};

pub use self::transcripts::transcript_bytes;
use crate::domain::{Import, ImportOutcome, RetentionCutoff, TicketDeletion};

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

pub fn open(database: &Database) -> Store {
    Store { database: database.clone() }
}

impl Store {
    /// Creates the partitions of the current and the next month. Idempotent.
    pub async fn prepare_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(database) => postgres::prepare_partitions(database, _now).await,
            Database::Sqlite(_) => Ok(()),
        }
    }

    /// Moves rows out of the default partition and creates the partitions of the coming months. Idempotent.
    pub async fn maintain_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(database) => postgres::maintain_partitions(database, _now).await,
            Database::Sqlite(_) => Ok(()),
        }
    }

    /// Writes imports in one transaction and returns their outcomes in the same order. The idempotency keys must be distinct
    /// (by organization and key); identities may repeat: the first one wins. `claim` selects how the events of accepted
    /// imports are written.
    pub async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        claim: FastPathClaim,
    ) -> Result<Vec<ImportOutcome>, DatabaseError> {
        on_database!(self, write, accept::accept_batch(&imports, claim))
    }

    pub async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError> {
        on_database!(self, read, find_ticket(organization_id, id))
    }

    /// Reads the transcripts of tickets, at least that of the first, until they have `max_bytes` as stored or as text.
    /// The tickets that were not read are in `unread`; those of the others that have a tombstone are in `deleted`.
    pub async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
        max_bytes: usize,
    ) -> Result<Transcripts<StoredTranscript>, DatabaseError> {
        on_database!(self, read, transcripts::read(tickets, max_bytes))
    }

    /// Facts of the existing tickets, without their transcripts.
    pub async fn read_ticket_facts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<Vec<TicketWithoutTranscript>, DatabaseError> {
        on_database!(self, read, transcripts::read_facts(&tickets))
    }

    /// Deletes a ticket in one transaction: removes the conversation and its display names, and writes a tombstone and the
    /// event. Its identity stays used: a new import is a duplicate. False when the organization has no such ticket.
    pub async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError> {
        on_database!(self, write, removal::delete_ticket(&deletion))
    }

    /// When a ticket was deleted, as long as its tombstone is kept.
    pub async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError> {
        let reference = TicketReference { organization_id, ticket_id: id };
        let found = on_database!(self, read, find_deletions(&[id]))?;
        let deletion = found.into_iter().find(|(ticket, _)| *ticket == reference);
        Ok(deletion.map(|(_, deleted_at)| deleted_at))
    }

    /// Whether the transcript of a ticket was removed at the end of its retention period.
    pub async fn is_expired(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<bool, DatabaseError> {
        on_database!(self, read, is_expired(organization_id, id))
    }

    /// Counts the tickets from the id `since` on whose conversations began in the half-open period. With `limit` or more
    /// tickets from that id on, considers only the newest `limit`, and returns the oldest of these, too.
    pub async fn count_tickets(
        &self,
        organization_id: OrganizationId,
        since: TicketId,
        period: (Option<Timestamp>, Option<Timestamp>),
        limit: u32,
    ) -> Result<TicketCount, DatabaseError> {
        on_database!(self, read, count_tickets(organization_id, since, period, limit))
    }

    /// Removes at most `limit` expired conversations of an organization, oldest first, with their display names, and writes
    /// the events, in one transaction; returns the number removed. Their identities stay used.
    pub async fn expire(&self, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::expire(cutoff, limit))
    }

    /// Removes at most `limit` expired tickets of an organization that are older than `first_kept`, whose evaluations have
    /// therefore expired, too; returns the number removed.
    pub async fn prune_expired_tickets(
        &self,
        organization_id: OrganizationId,
        first_kept: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::prune_expired_tickets(organization_id, first_kept, limit))
    }

    /// Removes at most `limit` tombstones older than `before`; returns the number removed.
    pub async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::prune_tombstones(before, limit))
    }

    /// Stores refused imports of an organization, and removes all but its latest [`MAX_REFUSALS`]. One that is stored already is
    /// ignored.
    ///
    /// [`MAX_REFUSALS`]: assay_contracts::refusal::MAX_REFUSALS
    pub async fn keep_refusals(
        &self,
        organization_id: OrganizationId,
        reported: Vec<ImportRefusal>,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, refusals::keep(organization_id, &reported))
    }

    /// The latest refused imports of an organization, newest first.
    pub async fn list_refusals(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Vec<ImportRefusal>, DatabaseError> {
        on_database!(self, read, refusals::list(organization_id))
    }

    /// Removes at most `limit` refusals older than `before`; returns the number removed.
    pub async fn prune_refusals(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        on_database!(self, write, refusals::prune(before, limit))
    }

    /// Removes a batch of expired recorded responses; returns the number removed.
    pub async fn prune_recorded_responses(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        on_database!(self, write, idempotency::Connection::prune_recorded_responses(now))
    }

    /// Number of batches that can be written concurrently, at most `wanted`.
    pub fn concurrent_writers(&self, wanted: usize) -> usize {
        let most = match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(_) => usize::MAX,
            Database::Sqlite(_) => 1,
        };
        wanted.clamp(1, most)
    }
}
