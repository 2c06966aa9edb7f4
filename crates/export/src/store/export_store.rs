//! The store of the export role.

use std::sync::Arc;

use assay_contracts::ids::{ExportId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError, on_database};
use assay_platform::runtime::now;
use assay_platform::web::cursor::Position;

#[cfg(feature = "distributed")]
use super::postgres;
use super::{Created, Creation, ExpiredFile, JobWithoutTarget, NotCreated, SkippedSequences, sqlite};
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::job::Job;
use crate::domain::removal::DeletedRow;

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct ExportStore {
    database: Database,
}

pub fn export_store(database: &Database) -> ExportStore {
    ExportStore { database: database.clone() }
}

impl ExportStore {
    /// Stores a job, its event and the response of its idempotency key in one transaction, which also counts the open jobs of
    /// the organization: simultaneous requests do not exceed the limit.
    pub async fn create(&self, creation: Creation) -> Result<Created, DatabaseError> {
        match on_database!(self, write, jobs::create(&creation)) {
            Ok(created) => Ok(created),
            Err(NotCreated::TooManyOpen) => Ok(Created::TooManyOpen),
            Err(NotCreated::Database(error)) => Err(error),
        }
    }

    /// Jobs of an organization after the position `after`, newest first, at most `limit`.
    pub async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Job>, DatabaseError> {
        on_database!(self, read, jobs::page(organization_id, after, limit))
    }

    pub async fn find(
        &self,
        organization_id: OrganizationId,
        id: ExportId,
    ) -> Result<Option<Job>, DatabaseError> {
        let found = self.find_of_any_organization(id).await?;
        Ok(found.filter(|job| job.organization_id == organization_id))
    }

    /// For requests whose signature was verified: they name no organization.
    pub async fn find_of_any_organization(&self, id: ExportId) -> Result<Option<Job>, DatabaseError> {
        on_database!(self, read, jobs::find(id))
    }

    /// Pending and running jobs without a target sequence, oldest first, at most `limit`.
    pub async fn jobs_without_target(&self, limit: u32) -> Result<Vec<JobWithoutTarget>, DatabaseError> {
        on_database!(self, read, jobs::without_target(limit))
    }

    /// Sets the target sequence of a job, unless it is set already.
    pub async fn set_target_sequence(&self, id: ExportId, target: i64) -> Result<(), DatabaseError> {
        on_database!(self, write, jobs::set_target_sequence(id, target))
    }

    /// Stores rows and inbox entries in one transaction; skips events that were handled before. Only a newer evaluation
    /// replaces the row of a ticket, and none replaces a tombstone.
    pub async fn record_rows(
        &self,
        rows: Arc<Vec<EvaluationRow>>,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, rows::record(&rows, now))
    }

    /// Writes tombstones over rows, existing or not, in one transaction; skips events that were handled before.
    pub async fn delete_rows(&self, rows: Vec<DeletedRow>, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, removal::delete_rows(rows, now))
    }

    /// Removes the oldest rows of an organization with ticket ids below `before`, at most `limit`; returns the count.
    pub async fn remove_rows_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::remove_older_than(organization_id, before, limit, now()))
    }

    /// Removes tombstones of tickets deleted before `before`, at most `limit`; returns the count.
    pub async fn prune_tombstones(&self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::prune_tombstones(before, limit))
    }

    /// Files that have expired at `now` and are not removed yet, at most `limit`, in the order of their expiry and id: those behind
    /// `after`, or the first ones.
    pub async fn expired_files(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, ExportId)>,
        limit: u32,
    ) -> Result<Vec<ExpiredFile>, DatabaseError> {
        on_database!(self, read, jobs::expired_files(now, after, limit))
    }

    /// Records that the file of a job was removed.
    pub async fn mark_file_removed(&self, id: ExportId, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, jobs::mark_file_removed(id, now))
    }

    /// Removes a batch of expired inbox entries and recorded responses; returns the count.
    pub async fn prune_inbox_and_recorded_responses(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        on_database!(self, write, rows::prune_inbox_and_recorded_responses(now))
    }

    /// Skips sequences that have been missing for too long: those below a sequence that arrived before `cutoff`, and those up
    /// to the target of an export created before `cutoff`. Returns the skipped ranges; some sequences of a range may have
    /// arrived.
    pub async fn skip_missing_sequences(
        &self,
        cutoff: Timestamp,
    ) -> Result<Vec<SkippedSequences>, DatabaseError> {
        on_database!(self, write, sequences::skip_missing(cutoff))
    }

    /// Deletes the skipped sequences of an organization, or of all, whose evaluations are older than `before`: exports no longer
    /// report them as missing.
    pub async fn prune_skipped_sequences(
        &self,
        organization_id: Option<OrganizationId>,
        before: Timestamp,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, sequences::prune_skipped(organization_id, before))
    }

    /// Moves rows out of the default partition and creates the partitions of the coming months. Does nothing on SQLite.
    pub async fn ensure_partitions(&self, _now: Timestamp) -> Result<(), DatabaseError> {
        match &self.database {
            #[cfg(feature = "distributed")]
            Database::Postgres(database) => postgres::ensure_partitions(database, _now).await,
            Database::Sqlite(_) => Ok(()),
        }
    }
}
