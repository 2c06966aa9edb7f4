//! The stores of jobs and of the read model. One trait for the export role and one for the export worker, implemented once, in
//! `sql/`, for PostgreSQL and SQLite.

mod conditions;
mod day_cache;
mod evaluations;
mod lines;
mod notifications;
#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{ExportId, OrganizationId, TicketId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::idempotency::{KeyReuse, Record};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::web::cursor::Position;
use async_trait::async_trait;

pub use self::day_cache::DayCache;
pub use self::evaluations::{EvaluationStore, FoundDays, ListPosition, ListSelection, RankBound, StaleDay};
pub use self::lines::{LineSink, SnapshotError, line_channel};
pub use self::notifications::Notifications;
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::job::Job;
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::domain::removal::DeletedRow;

/// Consumer name in the inbox, and queue name.
pub const CONSUMER: &str = "export.conversation-evaluated";

/// Consumer and queue name of deletions.
pub const DELETIONS_CONSUMER: &str = "export.evaluation-deleted";

/// The rows inserted in one transaction when an export is created.
#[derive(Debug, Clone)]
pub struct Creation {
    pub job: Job,
    /// Wakes a worker.
    pub event: OutgoingEvent,
    /// The recorded response of a request with an idempotency key.
    pub record: Option<Record>,
    /// Sequence of the latest evaluation that the file must include; `None` while unknown.
    pub target_sequence: Option<i64>,
    /// Open (pending or running) jobs that the organization may have, this one included.
    pub max_open: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    New,
    /// Nothing was stored: the idempotency key was used before.
    KeyReused(KeyReuse),
    /// Nothing was stored: the organization has as many open jobs as it may have.
    TooManyOpen,
}

/// Which files of a job are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileUse {
    /// The job is open: any of its files may be written, or become the file of the job.
    Open,
    /// The file of a complete job; all others are left over.
    File { object_key: String },
    /// No file: the job failed, or its file was removed.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredFile {
    pub id: ExportId,
    pub object_key: String,
    pub expires_at: Timestamp,
}

/// A job whose target sequence is not set yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWithoutTarget {
    pub id: ExportId,
    pub organization_id: OrganizationId,
}

/// Sequences that exports no longer wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedSequences {
    pub organization_id: OrganizationId,
    /// First and last, inclusive.
    pub sequences: (i64, i64),
}

/// The rows and lines of a file.
#[derive(Debug, Clone)]
pub struct Selection {
    pub organization_id: OrganizationId,
    pub kind: ExportKind,
    /// The same filters as for lists.
    pub filters: ExportFilters,
}

/// The store of the export role.
#[async_trait]
pub trait ExportStore: Send + Sync {
    /// Stores a job, its event and the response of its idempotency key in one transaction, which also counts the open jobs of
    /// the organization: simultaneous requests do not exceed the limit.
    async fn create(&self, creation: Creation) -> Result<Created, DatabaseError>;

    /// Jobs of an organization after the position `after`, newest first, at most `limit`.
    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Job>, DatabaseError>;

    async fn find(&self, organization_id: OrganizationId, id: ExportId)
    -> Result<Option<Job>, DatabaseError>;

    /// A job of any organization, for a request with a verified signature.
    async fn find_signed(&self, id: ExportId) -> Result<Option<Job>, DatabaseError>;

    /// Pending and running jobs without a target sequence, oldest first, at most `limit`.
    async fn jobs_without_target(&self, limit: u32) -> Result<Vec<JobWithoutTarget>, DatabaseError>;

    /// Sets the target sequence of a job, unless it is set already.
    async fn set_target_sequence(&self, id: ExportId, target: i64) -> Result<(), DatabaseError>;

    /// Stores rows and inbox entries in one transaction; skips events that were handled before. Only a newer evaluation
    /// replaces the row of a ticket, and none replaces a tombstone.
    async fn record_rows(&self, rows: Arc<Vec<EvaluationRow>>, now: Timestamp) -> Result<(), DatabaseError>;

    /// Writes tombstones over rows, existing or not, in one transaction; skips events that were handled before.
    async fn delete_rows(&self, rows: Vec<DeletedRow>, now: Timestamp) -> Result<(), DatabaseError>;

    /// Removes the oldest rows of an organization with ticket ids below `before`, at most `limit`; returns the count.
    async fn remove_rows_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: u32,
    ) -> Result<usize, DatabaseError>;

    /// Removes tombstones of tickets deleted before `before`, at most `limit`; returns the count.
    async fn prune_tombstones(&self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError>;

    /// Files that have expired at `now` and are not removed yet, at most `limit`, in the order of their expiry and id: those behind
    /// `after`, or the first ones.
    async fn expired_files(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, ExportId)>,
        limit: u32,
    ) -> Result<Vec<ExpiredFile>, DatabaseError>;

    /// Records that the file of a job was removed.
    async fn mark_file_removed(&self, id: ExportId, now: Timestamp) -> Result<(), DatabaseError>;

    /// Removes a batch of expired inbox entries and idempotency records; returns the count.
    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError>;

    /// Skips sequences that have been missing for too long: those below a sequence that arrived before `cutoff`, and those up
    /// to the target of an export created before `cutoff`. Returns the skipped ranges; some sequences of a range may have
    /// arrived.
    async fn skip_missing_sequences(&self, cutoff: Timestamp)
    -> Result<Vec<SkippedSequences>, DatabaseError>;

    /// Deletes the skipped sequences of an organization, or of all, whose evaluations are older than `before`.
    async fn prune_skipped_sequences(
        &self,
        organization_id: Option<OrganizationId>,
        before: Timestamp,
    ) -> Result<(), DatabaseError>;

    /// Moves rows out of the default partition and creates the partitions of the coming months. Does nothing on SQLite.
    async fn ensure_partitions(&self, now: Timestamp) -> Result<(), DatabaseError>;
}

/// The store of the export worker, on the same database.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Claims a job that is pending, or running with an expired lease: the oldest one of the organization with the fewest jobs
    /// under a lease.
    async fn claim(&self, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError>;

    /// Extends the lease to `until`. `false` when the lease is lost.
    async fn renew(&self, claim: &Claim, now: Timestamp, until: Timestamp) -> Result<bool, DatabaseError>;

    /// Completes the job with its file. `false` when the lease is lost; `true` also when this file is published already.
    async fn complete(
        &self,
        claim: &Claim,
        file: FinishedFile,
        now: Timestamp,
    ) -> Result<bool, DatabaseError>;

    /// Fails the job permanently, with a message for the user. `false` when the lease is lost.
    async fn fail(&self, claim: &Claim, message: &str, now: Timestamp) -> Result<bool, DatabaseError>;

    /// Releases the lease after a failure; the next attempt is due at `due`. `false` when the lease is lost.
    async fn retry_later(&self, claim: &Claim, due: Timestamp, now: Timestamp)
    -> Result<bool, DatabaseError>;

    /// Releases the lease on shutdown; the attempt is not counted. `false` when the lease is lost.
    async fn release(&self, claim: &Claim, now: Timestamp) -> Result<bool, DatabaseError>;

    /// Fails jobs with `max_attempts` counted attempts and an expired lease: their workers crashed. Returns the count.
    /// `latest_lease_end` as in [`ClaimTerms`].
    async fn fail_exhausted(
        &self,
        max_attempts: u32,
        latest_lease_end: Timestamp,
        message: &str,
        now: Timestamp,
    ) -> Result<usize, DatabaseError>;

    /// Updates the expiry of kept files of an organization to their completion plus `period`, at most `limit`; returns the
    /// number of changed files.
    async fn apply_file_retention(
        &self,
        organization_id: OrganizationId,
        period: RetentionPeriod,
        limit: u32,
    ) -> Result<usize, DatabaseError>;

    /// Number of sequences between the watermark of the read model and the target of the job. `None` without a target.
    async fn evaluation_lag(&self, id: ExportId) -> Result<Option<i64>, DatabaseError>;

    /// Number of evaluations up to the target of the job that have not arrived, skipped ones included. `None` without a
    /// target.
    async fn missing_evaluations(&self, id: ExportId) -> Result<Option<u64>, DatabaseError>;

    /// Which files of these jobs are in use; a job that does not exist is left out.
    async fn file_uses(&self, ids: Vec<ExportId>) -> Result<BTreeMap<ExportId, FileUse>, DatabaseError>;

    /// Those of these organizations that have a job.
    async fn organizations_with_jobs(
        &self,
        organizations: BTreeSet<OrganizationId>,
    ) -> Result<BTreeSet<OrganizationId>, DatabaseError>;

    /// Sends the selected lines to `sink`, ordered by conversation date and ticket id, as one consistent snapshot; returns
    /// their number. Ends early when the receiver is dropped.
    async fn copy_lines(&self, selection: Selection, sink: LineSink) -> Result<u64, SnapshotError>;
}

pub fn export_store(database: &Database) -> Arc<dyn ExportStore> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => {
            Arc::new(postgres::SqlStore::new(postgres.clone(), Notifications::Off))
        }
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone(), Notifications::Off)),
    }
}

pub fn evaluation_store(database: &Database) -> Arc<dyn EvaluationStore> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => {
            Arc::new(postgres::SqlStore::new(postgres.clone(), Notifications::Off))
        }
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone(), Notifications::Off)),
    }
}

pub fn work_store(database: &Database, notifications: Notifications) -> Arc<dyn WorkStore> {
    match database {
        #[cfg(feature = "distributed")]
        Database::Postgres(postgres) => Arc::new(postgres::SqlStore::new(postgres.clone(), notifications)),
        Database::Sqlite(sqlite) => Arc::new(sqlite::SqlStore::new(sqlite.clone(), notifications)),
    }
}
