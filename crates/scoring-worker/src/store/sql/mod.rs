//! The store, compiled once for each database: `super` is `postgres.rs` or `sqlite.rs`, which define what differs.

mod evaluations;
mod removal;
pub(super) mod schema;

use std::collections::HashSet;
use std::sync::Arc;

use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::FastPathClaim;
use assay_messaging::{OutgoingEvent, inbox};
use assay_platform::db::DatabaseError;
use async_trait::async_trait;

use super::{Connection, Database, IdType, insert, maintain_partitions, prepare_partitions};
use crate::store::{DeletedEvaluation, EvaluationStore, NewEvaluation, StoredEvaluation};

pub(in crate::store) struct SqlStore {
    database: Database,
}

impl SqlStore {
    pub(in crate::store) fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl EvaluationStore for SqlStore {
    async fn record(
        &self,
        batch: Arc<Vec<NewEvaluation>>,
        claim: FastPathClaim,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError> {
        self.database.write(move |connection| evaluations::record(connection, &batch, claim)).await
    }

    async fn record_given_up(&self, failure: NewEvaluation) -> Result<bool, DatabaseError> {
        self.database.write(move |connection| evaluations::record_given_up(connection, &failure)).await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError> {
        self.database.read(move |connection| evaluations::find(connection, organization_id, ticket_id)).await
    }

    async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError> {
        self.database.write(move |connection| removal::delete(connection, deletions)).await
    }

    async fn finished(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError> {
        self.database.read(move |connection| evaluations::finished(connection, &tickets)).await
    }

    async fn remove_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        self.database
            .write(move |connection| removal::remove_older_than(connection, organization_id, before, limit))
            .await
    }

    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        self.database.write(move |connection| removal::prune_tombstones(connection, before, limit)).await
    }

    async fn evaluation_count(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
        self.database.read(move |connection| evaluations::count(connection, organization_id)).await
    }

    async fn prepare_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        prepare_partitions(&self.database, now).await
    }

    async fn maintain_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        maintain_partitions(&self.database, now).await
    }

    async fn prune_inbox(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        let before = now.plus_millis(-inbox::RETENTION_MILLIS);
        self.database.write(move |connection| inbox::prune(connection, before, inbox::PRUNE_BATCH)).await
    }
}
