//! Where conversations are kept: one trait of the role's use cases, one implementation for each database.

mod postgres;
mod rows;
mod sqlite;
mod transcripts;

use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::TicketReference;
use assay_contracts::ticket::Ticket;
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::Handover;
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

use self::postgres::PostgresStore;
use self::sqlite::SqliteStore;
pub use self::transcripts::StoredTranscripts;
use crate::domain::{Expiry, Import, ImportOutcome, TicketDeletion};

/// The conversations.
#[async_trait]
pub trait Store: Send + Sync {
    /// Prepares the tables for what will be written in the coming months. Safe to be called at any time.
    async fn prepare(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Writes imports in one transaction, and answers what came of each, in the same order. Their idempotency keys
    /// must all be different (by organization and key); their identities need not be: the first one wins. The events of
    /// what was accepted are written as `handover` says.
    async fn accept_batch(
        &self,
        imports: Vec<Arc<Import>>,
        handover: Handover,
    ) -> Result<Vec<ImportOutcome>, DatabaseError>;

    /// A ticket of an organization.
    async fn find_ticket(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Ticket>, DatabaseError>;

    /// Those of the tickets that exist, and those that are known to be deleted.
    async fn read_transcripts(
        &self,
        tickets: Vec<TicketReference>,
    ) -> Result<StoredTranscripts, DatabaseError>;

    /// Deletes a ticket in one transaction: the conversation, the names that it brought, and writes down that it was
    /// deleted, and the event. Its identity stays used. False when the organization has no such ticket.
    async fn delete_ticket(&self, deletion: TicketDeletion) -> Result<bool, DatabaseError>;

    /// When a ticket of an organization was deleted, as far as that is remembered.
    async fn find_deletion(
        &self,
        organization_id: OrganizationId,
        id: TicketId,
    ) -> Result<Option<Timestamp>, DatabaseError>;

    /// Removes the oldest expired conversations of an organization and the names that they brought, at most `limit`, with
    /// the events that tell of it, in one transaction; answers how many. Their identities stay used.
    async fn expire(&self, expiry: Expiry, limit: usize) -> Result<usize, DatabaseError>;

    /// Forgets that tickets were deleted before `before`, at most `limit`; answers how many.
    async fn forget_deletions(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError>;

    /// Removes a batch of expired idempotency records; answers how many.
    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError>;

    /// How many batches can be written at the same time, when so many are wanted.
    fn concurrent_writers(&self, wanted: usize) -> usize;
}

/// The store in `database`.
pub fn open(database: &Database) -> Arc<dyn Store> {
    match database {
        Database::Postgres(postgres) => Arc::new(PostgresStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite.clone())),
    }
}
