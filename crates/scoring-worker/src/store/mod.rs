//! The store of evaluations. Its statements are written once (`sql`) and compiled for each
//! database: `on_database!` calls `postgres::f(connection, …)` or `sqlite::f(connection, …)`.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;

use std::collections::HashSet;
use std::sync::Arc;

use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::{EvaluationId, EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::outbox::FastPathClaim;
use assay_messaging::{OutgoingEvent, inbox};
use assay_platform::db::{Database, DatabaseError, on_database};
use assay_platform::runtime::RequestContext;
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

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct EvaluationStore {
    database: Database,
}

pub fn open(database: &Database) -> EvaluationStore {
    EvaluationStore { database: database.clone() }
}

impl EvaluationStore {
    /// Stores a batch in one transaction: inbox, evaluations, outbox. Skips events that were handled before and tickets
    /// that are evaluated already or deleted. An evaluation replaces a failure of [`Self::record_given_up`] and gets a
    /// later time than the failure, because consumers keep the latest. Returns the events that it enqueued, claimed
    /// according to `claim`.
    pub async fn record(
        &self,
        evaluations: Arc<Vec<NewEvaluation>>,
        claim: FastPathClaim,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError> {
        on_database!(self, write, evaluations::record(&evaluations, claim))
    }

    /// Stores the failure of a ticket whose event becomes a dead letter, in one transaction: evaluation, outbox. False when the
    /// ticket is evaluated already or deleted.
    pub async fn record_given_up(&self, failure: NewEvaluation) -> Result<bool, DatabaseError> {
        on_database!(self, write, evaluations::record_given_up(&failure))
    }

    pub async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError> {
        on_database!(self, read, evaluations::find(organization_id, ticket_id))
    }

    /// Replaces evaluations, existing or not, with tombstones in one transaction: inbox, evaluations, outbox. Skips events
    /// that were handled before.
    pub async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError> {
        on_database!(self, write, removal::delete(deletions))
    }

    /// The tickets among `tickets` that are evaluated or deleted. A failure of [`Self::record_given_up`] does not count.
    pub async fn finished(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError> {
        on_database!(self, read, evaluations::finished(&tickets))
    }

    /// Removes the oldest evaluations of an organization with ticket ids below `before`, at most `limit`; returns the
    /// count.
    pub async fn remove_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::remove_older_than(organization_id, before, limit))
    }

    /// Removes tombstones of tickets deleted before `before`, at most `limit`; returns the count.
    pub async fn prune_tombstones(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::prune_tombstones(before, limit))
    }

    /// Number of evaluations of this organization that were ever recorded: its latest sequence.
    pub async fn evaluation_count(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError> {
        on_database!(self, read, evaluations::count(organization_id))
    }

    /// Prepares the table for writes: the partitions of the current and the next month.
    pub async fn prepare_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(database) => postgres::prepare_partitions(database, _now).await,
            Database::Sqlite(_) => Ok(()),
        }
    }

    /// Moves rows out of the default partition and creates the partitions of the coming months.
    pub async fn maintain_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(database) => postgres::maintain_partitions(database, _now).await,
            Database::Sqlite(_) => Ok(()),
        }
    }

    /// Removes a batch of expired inbox entries; returns the count.
    pub async fn prune_inbox(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        let before = now.plus_millis(-inbox::RETENTION_MILLIS);
        on_database!(self, write, inbox::Connection::prune_events(before, inbox::PRUNE_BATCH))
    }
}
