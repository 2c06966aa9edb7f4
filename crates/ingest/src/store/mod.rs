//! The store of conversations: a trait for the role's use cases, implemented once (`sql`) and compiled for each database.

#[cfg(feature = "distributed")]
mod postgres;
mod rows;
mod sqlite;
mod transcripts;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{TicketCount, TicketReference, UnreadableTranscript};
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::FastPathClaim;
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

pub use self::transcripts::{StoredTranscripts, transcript_bytes};
use crate::domain::{Import, ImportOutcome, RetentionCutoff, TicketDeletion};

#[async_trait]
pub trait Store: Send + Sync {
    /// Creates the partitions of the current and the next month. Idempotent.
    async fn prepare_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Moves rows out of the default partition and creates the partitions of the coming months. Idempotent.
    async fn maintain_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Writes imports in one transaction and returns their outcomes in the same order. The idempotency keys must be distinct
    /// (by organization and key); identities may repeat: the first one wins. `claim` selects how the events of accepted
    /// imports are written.
    async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        claim: FastPathClaim,
    ) -> Result<Vec<ImportOutcome>, DatabaseError>;

    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError>;

    /// Reads the transcripts of tickets, at least that of the first, and stops when they have `max_bytes`, compressed or as text.
    /// The tickets that were not read are in `unread`; those of the others that have a tombstone are in `deleted`.
    async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
        max_bytes: usize,
    ) -> Result<StoredTranscripts, DatabaseError>;

    /// Facts of the existing tickets, without their transcripts.
    async fn read_ticket_facts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<Vec<UnreadableTranscript>, DatabaseError>;

    /// Deletes a ticket in one transaction: removes the conversation and its display names, and writes a tombstone and the
    /// event. Its identity stays used: a new import is a duplicate. False when the organization has no such ticket.
    async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError>;

    /// When a ticket was deleted, as long as its tombstone is kept.
    async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError>;

    /// Whether the transcript of a ticket was removed at the end of its retention period.
    async fn is_expired(&self, organization_id: OrganizationId, id: TicketId) -> Result<bool, DatabaseError>;

    /// Counts the tickets from the id `since` on whose conversations began in the half-open period. With `limit` or more
    /// tickets from that id on, considers only the newest `limit`, and returns the oldest of these, too.
    async fn count_tickets(
        &self,
        organization_id: OrganizationId,
        since: TicketId,
        period: (Option<Timestamp>, Option<Timestamp>),
        limit: u32,
    ) -> Result<TicketCount, DatabaseError>;

    /// Removes at most `limit` expired conversations of an organization, oldest first, with their display names, and writes
    /// the events, in one transaction; returns the number removed. Their identities stay used.
    async fn expire(&self, cutoff: RetentionCutoff, limit: usize) -> Result<usize, DatabaseError>;

    /// Removes at most `limit` expired tickets of an organization that are older than `first_kept`, whose evaluations have
    /// therefore expired, too; returns the number removed.
    async fn prune_expired_tickets(
        &self,
        organization_id: OrganizationId,
        first_kept: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError>;

    /// Removes at most `limit` tombstones older than `before`; returns the number removed.
    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError>;

    /// Removes a batch of expired idempotency records; returns the number removed.
    async fn prune_idempotency_records(&self, now: Timestamp) -> Result<usize, DatabaseError>;

    /// Number of batches that can be written concurrently, at most `wanted`.
    fn concurrent_writers(&self, wanted: usize) -> usize;
}

pub fn open(database: &Database) -> Arc<dyn Store> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => Arc::new(postgres::SqlStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone())),
    }
}
