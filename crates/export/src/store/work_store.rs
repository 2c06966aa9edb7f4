//! The store of the export worker, on the database of the export role.

use std::collections::{BTreeMap, BTreeSet};

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError, on_database};

#[cfg(feature = "distributed")]
use super::postgres;
use super::{FileSelection, FileUse, LineSink, Notifications, SnapshotError, sqlite};
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct WorkStore {
    database: Database,
    notifications: Notifications,
}

pub fn work_store(database: &Database, notifications: Notifications) -> WorkStore {
    WorkStore { database: database.clone(), notifications }
}

impl WorkStore {
    /// Claims a job that is pending, or running with an expired lease: the oldest one of the organization with the fewest jobs
    /// under a lease.
    pub async fn claim(&self, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError> {
        on_database!(self, write, leases::claim(terms))
    }

    /// Extends the lease to `until`. `false` when the lease is lost.
    pub async fn renew(
        &self,
        claim: &Claim,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let claim = claim.clone();
        on_database!(self, write, leases::renew(&claim, now, until))
    }

    /// Completes the job with its file. `false` when the lease is lost; `true` also when it is complete with this file already.
    pub async fn complete(
        &self,
        claim: &Claim,
        file: FinishedFile,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (claim, notifications) = (claim.clone(), self.notifications);
        on_database!(self, write, leases::complete(&claim, &file, now, notifications))
    }

    /// Fails the job permanently, with a message for the user. `false` when the lease is lost.
    pub async fn fail(&self, claim: &Claim, message: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        let (claim, message, notifications) = (claim.clone(), message.to_owned(), self.notifications);
        on_database!(self, write, leases::fail(&claim, &message, now, notifications))
    }

    /// Releases the lease after a failure; the next attempt is due at `due`. `false` when the lease is lost.
    pub async fn retry_later(
        &self,
        claim: &Claim,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (claim, released_claims) = (claim.clone(), 0);
        on_database!(self, write, leases::release_until(&claim, due, released_claims, now))
    }

    /// Releases the lease on shutdown; the attempt is not counted. `false` when the lease is lost.
    pub async fn release(&self, claim: &Claim, now: Timestamp) -> Result<bool, DatabaseError> {
        let (claim, due, released_claims) = (claim.clone(), now, 1);
        on_database!(self, write, leases::release_until(&claim, due, released_claims, now))
    }

    /// Fails jobs with `max_attempts` counted attempts and an expired lease: their workers crashed. Returns the count.
    /// `latest_lease_end` as in [`ClaimTerms`].
    pub async fn fail_exhausted(
        &self,
        max_attempts: u32,
        latest_lease_end: Timestamp,
        message: &str,
        now: Timestamp,
    ) -> Result<usize, DatabaseError> {
        let (message, notifications) = (message.to_owned(), self.notifications);
        on_database!(
            self,
            write,
            leases::fail_exhausted(max_attempts, latest_lease_end, &message, now, notifications)
        )
    }

    /// Updates the expiry of kept files of an organization to their completion plus `period`, at most `limit`; returns the
    /// number of changed files.
    pub async fn apply_file_retention(
        &self,
        organization_id: OrganizationId,
        period: RetentionPeriod,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        on_database!(self, write, removal::apply_file_retention(organization_id, period, limit))
    }

    /// Number of sequences between the watermark of the read model and the target of the job. `None` without a target.
    pub async fn evaluation_lag(&self, id: ExportId) -> Result<Option<i64>, DatabaseError> {
        on_database!(self, read, jobs::evaluation_lag(id))
    }

    /// Number of evaluations up to the target of the job that have not arrived, skipped ones included. `None` without a
    /// target.
    pub async fn missing_evaluations(&self, id: ExportId) -> Result<Option<u64>, DatabaseError> {
        on_database!(self, read, sequences::missing(id))
    }

    /// Which files of these jobs are in use; a job that does not exist is left out.
    pub async fn file_uses(&self, ids: Vec<ExportId>) -> Result<BTreeMap<ExportId, FileUse>, DatabaseError> {
        on_database!(self, read, jobs::file_uses(&ids))
    }

    /// Those of these organizations that have a job.
    pub async fn organizations_with_jobs(
        &self,
        organizations: BTreeSet<OrganizationId>,
    ) -> Result<BTreeSet<OrganizationId>, DatabaseError> {
        on_database!(self, read, jobs::organizations_with_jobs(&organizations))
    }

    /// Sends the selected lines to `sink`, ordered by conversation date and ticket id, as one consistent snapshot; returns
    /// their number. Ends early when the receiver is dropped.
    pub async fn copy_lines(&self, selection: FileSelection, sink: LineSink) -> Result<u64, SnapshotError> {
        on_database!(self, run_long / read, copy_lines(&selection, sink))
    }
}
