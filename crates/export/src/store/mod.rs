//! The stores of jobs and of the read model: one for the export role, one for its lists and one for the export worker. Their
//! statements are written once (`sql/`) and compiled for each database: `on_database!` calls `postgres::f(connection, …)` or
//! `sqlite::f(connection, …)`.

mod conditions;
mod day_cache;
mod evaluation_store;
mod evaluations;
mod export_store;
mod lines;
mod notifications;
#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;
mod work_store;

use assay_contracts::export::{ExportFilters, ExportKind};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_messaging::OutgoingEvent;
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{KeyReuse, Record};

pub use self::day_cache::DayCache;
pub use self::evaluation_store::{EvaluationStore, evaluation_store};
pub use self::evaluations::{FoundDays, ListPosition, ListSelection, RankBound, StaleDay};
pub use self::export_store::{ExportStore, export_store};
pub use self::lines::{LineSink, SnapshotError, line_channel};
pub use self::notifications::Notifications;
pub use self::work_store::{WorkStore, work_store};
use crate::domain::job::Job;

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

/// Nothing was stored: the transaction is rolled back, including the record of the idempotency key.
enum NotCreated {
    TooManyOpen,
    Database(DatabaseError),
}

impl<E: Into<DatabaseError>> From<E> for NotCreated {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
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

/// Whose rows a file has, and which of their two lines.
#[derive(Debug, Clone)]
pub struct FileSelection {
    pub organization_id: OrganizationId,
    pub kind: ExportKind,
    /// The same filters as for lists.
    pub filters: ExportFilters,
}
