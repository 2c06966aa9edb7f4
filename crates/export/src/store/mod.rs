//! What is kept: jobs, and the rows that files are made of. One trait for the export service and one for the export
//! worker, each with two plain implementations.

mod finished;
mod lines;
mod postgres;
mod progress;
mod record;
mod removal;
mod sqlite;

use std::sync::Arc;

use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{EventId, ExportId, OrganizationId, TicketId};
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::idempotency::{Earlier, Record};
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

pub use self::finished::Announces;
pub use self::lines::{LineSink, SnapshotError, line_channel};
use self::postgres::PostgresStore;
use self::sqlite::SqliteStore;
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::job::Job;
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::domain::position::Position;
use crate::domain::removal::DeletedRow;

/// The name under which handled events are recorded.
pub const CONSUMER: &str = "export.conversation-evaluated";

/// The same for events of deletion.
pub const DELETIONS_CONSUMER: &str = "export.evaluation-deleted";

/// Everything that changes when an export is created: all of it or nothing.
#[derive(Debug, Clone)]
pub struct Creation {
    /// The job.
    pub job: Job,
    /// What tells a worker of it.
    pub event: OutgoingEvent,
    /// For a request with an idempotency key: the answer it will get.
    pub record: Option<Record>,
    /// How many evaluations of the organization there are: the file shall hold all of them. `None`: not known.
    pub awaited_evaluations: Option<i64>,
}

/// What became of a [`Creation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It took place.
    New,
    /// Nothing was changed: the request's idempotency key was used before.
    Earlier(Earlier),
}

/// A row and the event that brought it.
#[derive(Debug, Clone)]
pub struct ReceivedRow {
    /// The event.
    pub event_id: EventId,
    /// The row.
    pub row: EvaluationRow,
}

/// A file whose retention time has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredFile {
    /// Its job.
    pub id: ExportId,
    /// Its key.
    pub object_key: String,
}

/// A job of which nobody knows yet how many evaluations its file shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncountedJob {
    /// The job.
    pub id: ExportId,
    /// Its tenant.
    pub organization_id: OrganizationId,
}

/// Evaluations that exports wait for no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Their numbers, both ends included.
    pub numbers: (i64, i64),
}

/// Which rows a file holds, and which of their lines.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Which line.
    pub kind: ExportKind,
    /// Which rows: half-open, on the conversation's date.
    pub filters: ExportFilters,
}

/// What the export service asks of its database.
#[async_trait]
pub trait ExportStore: Send + Sync {
    /// Stores a job, its event and the answer to its idempotency key, in one transaction.
    async fn create(&self, creation: Creation) -> Result<Created, DatabaseError>;

    /// Jobs of an organization, newest first, from behind `after` on, at most `limit`.
    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Job>, DatabaseError>;

    /// A job of an organization.
    async fn find(&self, organization_id: OrganizationId, id: ExportId)
    -> Result<Option<Job>, DatabaseError>;

    /// A job of whatever organization, for a request that has proved its right to it otherwise.
    async fn find_signed(&self, id: ExportId) -> Result<Option<Job>, DatabaseError>;

    /// Jobs that wait or run and whose number of evaluations is not known, oldest first, at most `limit`.
    async fn uncounted_jobs(&self, limit: u32) -> Result<Vec<UncountedJob>, DatabaseError>;

    /// Notes how many evaluations the file of a job shall hold, unless that is known.
    async fn set_awaited(&self, id: ExportId, evaluations: i64) -> Result<(), DatabaseError>;

    /// Stores rows whose events were not handled before, and records the events, in one transaction. A newer
    /// evaluation replaces the row of its ticket, an older one never does, and none that of a deleted ticket.
    async fn record_rows(&self, rows: Vec<ReceivedRow>, now: Timestamp) -> Result<(), DatabaseError>;

    /// Deletes the rows of tickets, those to come included, unless the events were handled before, in one transaction.
    async fn delete_rows(&self, rows: Vec<DeletedRow>, now: Timestamp) -> Result<(), DatabaseError>;

    /// Removes the oldest rows of an organization whose tickets' ids lie before `before`, at most `limit`; answers how many.
    async fn remove_older_rows(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: u32,
    ) -> Result<usize, DatabaseError>;

    /// Forgets that tickets were deleted before `before`, at most `limit`; answers how many.
    async fn forget_deletions(&self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError>;

    /// Files to be removed at `now`, at most `limit`.
    async fn expired_files(&self, now: Timestamp, limit: u32) -> Result<Vec<ExpiredFile>, DatabaseError>;

    /// Notes that the file of a job was removed.
    async fn file_removed(&self, id: ExportId, now: Timestamp) -> Result<(), DatabaseError>;

    /// Removes some idempotency records that count no more; answers how many.
    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError>;

    /// Waits no more for evaluations with numbers before one that has been here since before `limit`: which those are.
    async fn give_up_arrivals(&self, limit: Timestamp) -> Result<Vec<GivenUp>, DatabaseError>;

    /// Makes the partitions of the coming months, where there are partitions.
    async fn ensure_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;
}

/// What the export worker asks of the same database.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Takes the oldest job that waits: a pending one, or a running one whose hold has ended.
    async fn claim(&self, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError>;

    /// Holds on to a job until `until`. `false` when it is held by another, or at its end.
    async fn heartbeat(&self, claim: &Claim, now: Timestamp, until: Timestamp)
    -> Result<bool, DatabaseError>;

    /// Shows the file. `false` when the job is no longer held; `true` also when this very file is shown already.
    async fn complete(
        &self,
        claim: &Claim,
        file: FinishedFile,
        now: Timestamp,
    ) -> Result<bool, DatabaseError>;

    /// Ends the job for good, with a message for people. `false` when it is no longer held.
    async fn fail(&self, claim: &Claim, message: &str, now: Timestamp) -> Result<bool, DatabaseError>;

    /// Lets go of the job after a failure; it is tried again from `due` on. `false` when it is no longer held.
    async fn retry_later(&self, claim: &Claim, due: Timestamp, now: Timestamp)
    -> Result<bool, DatabaseError>;

    /// Lets go of the job because the worker stops; the try does not count. `false` when it is no longer held.
    async fn hand_back(&self, claim: &Claim, now: Timestamp) -> Result<bool, DatabaseError>;

    /// Ends jobs for good that were tried `max_tries` times and are held by nobody: their workers died. Answers how
    /// many.
    async fn fail_exhausted(
        &self,
        max_tries: u32,
        message: &str,
        now: Timestamp,
    ) -> Result<usize, DatabaseError>;

    /// Gives files of an organization that are still kept the expiry that follows from `period`, counted from their
    /// completion, at most `limit`; answers how many had another one.
    async fn set_file_period(
        &self,
        organization_id: OrganizationId,
        period: Period,
        limit: u32,
    ) -> Result<usize, DatabaseError>;

    /// How many of the evaluations that there were when the job was created are not in the read model yet. `None` when it
    /// is not known how many there were.
    async fn missing_evaluations(&self, id: ExportId) -> Result<Option<i64>, DatabaseError>;

    /// Sends the selected lines into `sink`, in the order of conversation date and ticket id, as one consistent
    /// snapshot taken at the time of the call; answers their number. Runs until the end or until nobody receives.
    async fn copy_lines(&self, selection: Selection, sink: LineSink) -> Result<u64, SnapshotError>;
}

/// The store of the export service in `database`.
pub fn export_store(database: &Database) -> Arc<dyn ExportStore> {
    match database {
        Database::Postgres(postgres) => Arc::new(PostgresStore::new(postgres.clone(), Announces::Nothing)),
        Database::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite.clone(), Announces::Nothing)),
    }
}

/// The store of the export worker in the same database.
pub fn work_store(database: &Database, announces: Announces) -> Arc<dyn WorkStore> {
    match database {
        Database::Postgres(postgres) => Arc::new(PostgresStore::new(postgres.clone(), announces)),
        Database::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite.clone(), announces)),
    }
}
