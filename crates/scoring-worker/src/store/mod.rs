//! Where evaluations are kept.

mod postgres;
mod schema;
mod sqlite;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::{EvaluationId, EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_messaging::outbox::Handover;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{RequestContext, new_id};
use async_trait::async_trait;
use serde_json::value::RawValue;

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
    /// The event that led to it.
    pub asking_event_id: EventId,
    /// The request that led to the event, and so to this.
    pub context: Option<RequestContext>,
    /// What the others are told; its sequence is set when it is stored.
    pub evaluated: EncodedEvaluation,
    /// What came out.
    pub status: Status,
    /// Version of the scorer.
    pub scorer_version: String,
}

/// A stored evaluation, and the request that led to it.
struct Stored {
    evaluated: EncodedEvaluation,
    context: Option<RequestContext>,
}

/// What the others are told, with the evaluation as JSON: it is stored and sent as the same text.
pub type EncodedEvaluation = ConversationEvaluated<Box<RawValue>>;

impl NewEvaluation {
    /// The evaluation as JSON; absent when it failed.
    fn document(&self) -> Option<&str> {
        match &self.evaluated.outcome {
            EvaluationOutcome::Evaluated { evaluation } => Some(evaluation.get()),
            EvaluationOutcome::Failed { .. } => None,
        }
    }

    /// Why it failed.
    fn error_message(&self) -> Option<&str> {
        match &self.evaluated.outcome {
            EvaluationOutcome::Evaluated { .. } => None,
            EvaluationOutcome::Failed { error_message } => Some(error_message),
        }
    }
}

/// A ticket that was deleted, and the events around it.
#[derive(Debug, Clone)]
pub struct DeletedEvaluation {
    /// The event that said so.
    pub event_id: EventId,
    /// The event that passes it on.
    pub deleted_event: OutgoingEvent,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// When it was deleted.
    pub deleted_at: Timestamp,
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
    /// that has an evaluation already or was deleted change nothing, and tell nobody anything. Answers the events, written
    /// as `handover` says.
    async fn record(
        &self,
        evaluations: Vec<NewEvaluation>,
        handover: Handover,
    ) -> Result<Vec<OutgoingEvent>, DatabaseError>;

    /// The evaluation of a ticket of this organization.
    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
    ) -> Result<Option<StoredEvaluation>, DatabaseError>;

    /// Deletes the evaluations of tickets, those to come included, in one transaction: inbox, evaluations, outbox. An event
    /// that was handled before changes nothing and tells nobody anything.
    async fn delete(&self, deletions: Vec<DeletedEvaluation>) -> Result<(), DatabaseError>;

    /// Those of these tickets for which there is nothing to be done any more: they have an evaluation, or were deleted.
    async fn settled(&self, tickets: Vec<TicketId>) -> Result<HashSet<TicketId>, DatabaseError>;

    /// Removes the oldest evaluations of an organization whose tickets' ids lie before `before`, at most `limit`; answers
    /// how many.
    async fn remove_older(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: usize,
    ) -> Result<usize, DatabaseError>;

    /// Forgets that tickets were deleted before `before`, at most `limit`; answers how many.
    async fn forget_deletions(&self, before: Timestamp, limit: usize) -> Result<usize, DatabaseError>;

    /// How many evaluations of this organization were ever recorded.
    async fn evaluated(&self, organization_id: OrganizationId) -> Result<i64, DatabaseError>;

    /// Prepares the tables for the time around `now`.
    async fn prepare(&self, now: Timestamp) -> Result<(), DatabaseError>;

    /// Forgets some of the events that were handled long ago; answers how many.
    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError>;
}

/// The store on whichever database is open.
pub fn open(database: Database) -> Arc<dyn EvaluationStore> {
    match database {
        Database::Postgres(postgres) => Arc::new(postgres::PostgresStore::new(postgres)),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqliteStore::new(sqlite)),
    }
}

/// The evaluations whose events were not handled before, one for each ticket (a batch may hold an event twice), in the order
/// in which rows are locked. One event may lead to several.
fn unhandled(evaluations: Vec<NewEvaluation>, fresh: &HashSet<EventId>) -> Vec<NewEvaluation> {
    let is_fresh = |evaluation: &NewEvaluation| fresh.contains(&evaluation.asking_event_id);
    let mut evaluations: Vec<_> = evaluations.into_iter().filter(is_fresh).collect();
    evaluations.sort_by_key(|evaluation| evaluation.evaluated.ticket.id);
    evaluations.dedup_by_key(|evaluation| evaluation.evaluated.ticket.id);
    evaluations
}

/// The deletions whose events were not handled before, one for each event, in the order in which rows are locked.
fn unhandled_deletions(
    mut deletions: Vec<DeletedEvaluation>,
    mut fresh: HashSet<EventId>,
) -> Vec<DeletedEvaluation> {
    deletions.retain(|deletion| fresh.remove(&deletion.event_id));
    deletions.sort_by_key(|deletion| deletion.ticket_id);
    deletions
}

/// Stored evaluations of each organization, in the order in which the organizations' rows are locked.
fn by_organization(stored: impl Iterator<Item = NewEvaluation>) -> BTreeMap<OrganizationId, Vec<Stored>> {
    let mut organizations: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for NewEvaluation { evaluated, context, .. } in stored {
        organizations.entry(evaluated.organization_id).or_default().push(Stored { evaluated, context });
    }
    organizations
}

/// The events that tell of evaluations after which the organization has `total`: they are the last ones.
fn numbered(stored: Vec<Stored>, total: i64) -> Result<Vec<OutgoingEvent>, DatabaseError> {
    let before = total - i64::try_from(stored.len()).unwrap_or(i64::MAX);
    let events = stored.into_iter().zip(before + 1..).map(|(Stored { evaluated, context }, sequence)| {
        let evaluated = ConversationEvaluated { sequence: Some(sequence), ..evaluated };
        OutgoingEvent::following(context, new_id(), evaluated.evaluated_at, &evaluated)
    });
    // What could not be encoded was refused when its document was.
    events.collect::<Result<_, _>>().map_err(|error| DatabaseError::Corrupt(error.to_string()))
}
