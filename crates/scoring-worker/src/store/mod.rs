//! Where evaluations are kept.

mod postgres;
mod schema;
mod sqlite;

use std::sync::Arc;

use assay_contracts::ids::{EvaluationId, EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

/// The inbox entry under which handled events are recorded.
pub(crate) const CONSUMER: &str = "scoring-worker";

/// Status of a stored evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With AXIS.
    Scored,
    /// Without AXIS, with an audit.
    NotApplicable,
    /// Without anything.
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
    /// The event that asked for it.
    pub accepted_event_id: EventId,
    /// The event that tells of it.
    pub evaluated_event: OutgoingEvent,
    /// Its id.
    pub id: EvaluationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What came out.
    pub status: Status,
    /// The evaluation as JSON; absent when it failed.
    pub document: Option<String>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// Version of the scorer.
    pub scorer_version: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An evaluation as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvaluation {
    /// Its id.
    pub id: EvaluationId,
    /// The evaluation as JSON; absent when it failed.
    pub document: Option<String>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The use cases' view of the database.
#[async_trait]
pub trait EvaluationStore: Send + Sync {
    /// Stores a batch in one transaction: inbox, evaluations, outbox. An event that was handled before and a ticket
    /// that has an evaluation already change nothing, and tell nobody anything.
    async fn record(&self, evaluations: Vec<NewEvaluation>) -> Result<(), DatabaseError>;

    /// The evaluation of a ticket of this organization.
    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError>;

    /// How many evaluations of this organization were ever recorded.
    async fn evaluated(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError>;

    /// Prepares the tables for the time around `now`, and forgets events that were handled long ago.
    async fn maintain(&self, now: Timestamp) -> Result<(), DatabaseError>;
}

/// The store on whichever database is open.
pub fn open(database: Database) -> Arc<dyn EvaluationStore> {
    match database {
        Database::Postgres(postgres) => Arc::new(postgres::PostgresStore::new(postgres)),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqliteStore::new(sqlite)),
    }
}

/// The evaluations whose events were not handled before, one for each event: a batch may hold an event twice.
fn unhandled(
    evaluations: Vec<NewEvaluation>,
    mut fresh: std::collections::HashSet<EventId>,
) -> Vec<NewEvaluation> {
    evaluations.into_iter().filter(|evaluation| fresh.remove(&evaluation.accepted_event_id)).collect()
}

/// How many of these evaluations belong to each organization, in the order in which rows are locked.
fn by_organization(
    organizations: impl Iterator<Item = uuid::Uuid>,
) -> std::collections::BTreeMap<uuid::Uuid, i64> {
    let mut counts = std::collections::BTreeMap::new();
    for organization in organizations {
        *counts.entry(organization).or_insert(0) += 1;
    }
    counts
}
