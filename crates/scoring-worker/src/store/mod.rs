//! The store of evaluations: one trait, and the same statements, compiled for both databases.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;

use std::collections::HashSet;
use std::sync::Arc;

use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::{EvaluationId, EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_messaging::outbox::FastPathClaim;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::RequestContext;
use async_trait::async_trait;
use serde_json::value::RawValue;

/// Consumer name in the inbox.
pub(crate) const CONSUMER: &str = "scoring-worker";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With an AXIS score.
    Scored,
    /// Audit only, without an AXIS score.
    NotApplicable,
    Failed,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Scored => "scored",
            Self::NotApplicable => "not_applicable",
            Self::Failed => "failed",
        }
    }
}

/// A finished evaluation and the events around it.
#[derive(Debug, Clone)]
pub struct NewEvaluation {
    pub source_event_id: EventId,
    /// The import request, for tracing.
    pub context: Option<RequestContext>,
    /// The event to publish; the store sets its sequence. The evaluation is JSON text: the same text is stored and published.
    pub evaluated: ConversationEvaluated<Box<RawValue>>,
    pub status: Status,
    pub scorer_version: String,
    /// The event for webhooks; `None` when the organization has no webhook for evaluations.
    pub announced_event: Option<OutgoingEvent>,
}

impl NewEvaluation {
    /// JSON of the evaluation; `None` when it failed.
    fn document(&self) -> Option<&str> {
        match &self.evaluated.outcome {
            EvaluationOutcome::Evaluated { evaluation } => Some(evaluation.get()),
            EvaluationOutcome::Failed { .. } => None,
        }
    }

    fn error_message(&self) -> Option<&str> {
        match &self.evaluated.outcome {
            EvaluationOutcome::Evaluated { .. } => None,
            EvaluationOutcome::Failed { error_message } => Some(error_message),
        }
    }
}

/// A deleted ticket and the events to publish.
#[derive(Debug, Clone)]
pub struct DeletedEvaluation {
    /// The `conversation.deleted.v1` event.
    pub event_id: EventId,
    pub deleted_event: OutgoingEvent,
    /// `None` when the installation has no webhooks.
    pub retracted_event: Option<OutgoingEvent>,
    pub organization_id: OrganizationId,
    pub ticket_id: TicketId,
    pub deleted_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvaluation {
    pub id: EvaluationId,
    /// JSON of the evaluation; `None` when it failed.
    pub document: Option<String>,
    pub error_message: Option<String>,
    pub created_at: Timestamp,
}

#[async_trait]
pub trait EvaluationStore: Send + Sync {
    /// Stores a batch in one transaction: inbox, evaluations, outbox. Skips events that were handled before and tickets
    /// that are evaluated already or deleted. An evaluation replaces a failure of [`Self::record_given_up`] and gets a
    /// later time than the failure, because consumers keep the latest. Returns the events that it enqueued, claimed
    /// according to `claim`.
    async fn record(
        &self,
        evaluations: Arc<Vec<NewEvaluation>>,
        claim: FastPathClaim,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError>;

    /// Stores the failure of a ticket whose event becomes a dead letter, in one transaction: evaluation, outbox. False when the
    /// ticket is evaluated already or deleted.
    async fn record_given_up(&self, failure: NewEvaluation) -> Result<bool, DatabaseError>;

    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError>;

    /// Replaces evaluations, existing or not, with tombstones in one transaction: inbox, evaluations, outbox. Skips events
    /// that were handled before.
    async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError>;

    /// The tickets among `tickets` that are evaluated or deleted. A failure of [`Self::record_given_up`] does not count.
    async fn finished(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError>;

    /// Removes the oldest evaluations of an organization with ticket ids below `before`, at most `limit`; returns the
    /// count.
    async fn remove_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError>;

    /// Removes tombstones of tickets deleted before `before`, at most `limit`; returns the count.
    async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError>;

    /// Number of evaluations of this organization that were ever recorded: its latest sequence.
    async fn evaluation_count(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError>;

    /// Prepares the table for writes: the partitions of the current and the next month.
    async fn prepare_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Moves rows out of the default partition and creates the partitions of the coming months.
    async fn maintain_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Removes a batch of expired inbox entries; returns the count.
    async fn prune_inbox(&self, now: Timestamp) -> Result<usize, DatabaseError>;
}

pub fn open(database: &Database) -> Arc<dyn EvaluationStore> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => Arc::new(postgres::SqlStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone())),
    }
}
