//! The stores, written once for both databases: `postgres.rs` and `sqlite.rs` include these modules and define what differs. Both
//! databases accept the placeholders `$1`, `$2`, …; SQLite numbers them in order of appearance, so they must appear in order.

mod days;
mod evaluations;
mod facts;
mod facts_records;
mod jobs;
mod leases;
mod record;
mod removal;
mod rows;
mod schema;
mod sequences;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_contracts::ids::{ExportId, OrganizationId, TicketId};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::now;
use assay_platform::web::cursor::Position;
use async_trait::async_trait;

pub(in crate::store) use self::facts::{FactsValues, TicketRecord};
use super::{
    Backend, Connection, DIALECT, Database, Id, PRUNE_TOMBSTONES, REMOVE_OLDER, ROW_VALUES, RowByRow,
    SKIP_LOCKED, copy_lines, ensure_partitions, greatest, insert_facts, lock_until_commit, read_snapshot,
    upsert_rows,
};
use crate::domain::evaluation_row::EvaluationRow;
use crate::domain::job::Job;
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::domain::removal::DeletedRow;
use crate::store::{
    Created, Creation, ExpiredFile, ExportStore, FileUse, JobWithoutTarget, LineSink, Notifications,
    Selection, SkippedSequences, SnapshotError, WorkStore,
};

pub(in crate::store) struct SqlStore {
    database: Database,
    notifications: Notifications,
}

impl SqlStore {
    pub(in crate::store) fn new(database: Database, notifications: Notifications) -> Self {
        Self { database, notifications }
    }
}

#[async_trait]
impl ExportStore for SqlStore {
    async fn create(&self, creation: Creation) -> Result<Created, DatabaseError> {
        match self.database.write(move |connection| jobs::create(connection, &creation)).await {
            Ok(created) => Ok(created),
            Err(jobs::NotCreated::TooManyOpen) => Ok(Created::TooManyOpen),
            Err(jobs::NotCreated::Database(error)) => Err(error),
        }
    }

    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Job>, DatabaseError> {
        self.database.read(move |connection| jobs::page(connection, organization_id, after, limit)).await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        id: ExportId,
    ) -> Result<Option<Job>, DatabaseError> {
        let found = self.find_signed(id).await?;
        Ok(found.filter(|job| job.organization_id == organization_id))
    }

    async fn find_signed(&self, id: ExportId) -> Result<Option<Job>, DatabaseError> {
        self.database.read(move |connection| jobs::find(connection, id)).await
    }

    async fn jobs_without_target(&self, limit: u32) -> Result<Vec<JobWithoutTarget>, DatabaseError> {
        self.database.read(move |connection| jobs::without_target(connection, limit)).await
    }

    async fn set_target_sequence(&self, id: ExportId, target: i64) -> Result<(), DatabaseError> {
        self.database.write(move |connection| jobs::set_target_sequence(connection, id, target)).await
    }

    async fn record_rows(&self, rows: Arc<Vec<EvaluationRow>>, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| rows::record(connection, &rows, now)).await
    }

    async fn delete_rows(&self, rows: Vec<DeletedRow>, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| removal::delete_rows(connection, rows, now)).await
    }

    async fn remove_rows_older_than(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        self.database
            .write(move |connection| {
                removal::remove_older_than(connection, organization_id, before, limit, now())
            })
            .await
    }

    async fn prune_tombstones(&self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
        self.database.write(move |connection| removal::prune_tombstones(connection, before, limit)).await
    }

    async fn expired_files(
        &self,
        now: Timestamp,
        after: Option<(Timestamp, ExportId)>,
        limit: u32,
    ) -> Result<Vec<ExpiredFile>, DatabaseError> {
        self.database.read(move |connection| jobs::expired_files(connection, now, after, limit)).await
    }

    async fn mark_file_removed(&self, id: ExportId, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| jobs::mark_file_removed(connection, id, now)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.database.write(move |connection| rows::prune(connection, now)).await
    }

    async fn skip_missing_sequences(
        &self,
        cutoff: Timestamp,
    ) -> Result<Vec<SkippedSequences>, DatabaseError> {
        self.database.write(move |connection| sequences::skip_missing(connection, cutoff)).await
    }

    async fn prune_skipped_sequences(
        &self,
        organization_id: Option<OrganizationId>,
        before: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.database
            .write(move |connection| sequences::prune_skipped(connection, organization_id, before))
            .await
    }

    async fn ensure_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        ensure_partitions(&self.database, now).await
    }
}

#[async_trait]
impl WorkStore for SqlStore {
    async fn claim(&self, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError> {
        self.database.write(move |connection| leases::claim(connection, terms)).await
    }

    async fn renew(&self, claim: &Claim, now: Timestamp, until: Timestamp) -> Result<bool, DatabaseError> {
        let claim = claim.clone();
        self.database.write(move |connection| leases::renew(connection, &claim, now, until)).await
    }

    async fn complete(
        &self,
        claim: &Claim,
        file: FinishedFile,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (claim, notifications) = (claim.clone(), self.notifications);
        self.database
            .write(move |connection| leases::complete(connection, &claim, &file, now, notifications))
            .await
    }

    async fn fail(&self, claim: &Claim, message: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        let (claim, message, notifications) = (claim.clone(), message.to_owned(), self.notifications);
        self.database
            .write(move |connection| leases::fail(connection, &claim, &message, now, notifications))
            .await
    }

    async fn retry_later(
        &self,
        claim: &Claim,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (claim, released_claims) = (claim.clone(), 0);
        self.database
            .write(move |connection| leases::release_until(connection, &claim, due, released_claims, now))
            .await
    }

    async fn release(&self, claim: &Claim, now: Timestamp) -> Result<bool, DatabaseError> {
        let (claim, due, released_claims) = (claim.clone(), now, 1);
        self.database
            .write(move |connection| leases::release_until(connection, &claim, due, released_claims, now))
            .await
    }

    async fn fail_exhausted(
        &self,
        max_attempts: u32,
        latest_lease_end: Timestamp,
        message: &str,
        now: Timestamp,
    ) -> Result<usize, DatabaseError> {
        let (message, notifications) = (message.to_owned(), self.notifications);
        self.database
            .write(move |connection| {
                leases::fail_exhausted(
                    connection,
                    max_attempts,
                    latest_lease_end,
                    &message,
                    now,
                    notifications,
                )
            })
            .await
    }

    async fn apply_file_retention(
        &self,
        organization_id: OrganizationId,
        period: RetentionPeriod,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        self.database
            .write(move |connection| {
                removal::apply_file_retention(connection, organization_id, period, limit)
            })
            .await
    }

    async fn evaluation_lag(&self, id: ExportId) -> Result<Option<i64>, DatabaseError> {
        self.database.read(move |connection| jobs::evaluation_lag(connection, id)).await
    }

    async fn missing_evaluations(&self, id: ExportId) -> Result<Option<u64>, DatabaseError> {
        self.database.read(move |connection| sequences::missing(connection, id)).await
    }

    async fn file_uses(&self, ids: Vec<ExportId>) -> Result<BTreeMap<ExportId, FileUse>, DatabaseError> {
        self.database.read(move |connection| jobs::file_uses(connection, &ids)).await
    }

    async fn organizations_with_jobs(
        &self,
        organizations: BTreeSet<OrganizationId>,
    ) -> Result<BTreeSet<OrganizationId>, DatabaseError> {
        self.database.read(move |connection| jobs::organizations_with_jobs(connection, &organizations)).await
    }

    async fn copy_lines(&self, selection: Selection, sink: LineSink) -> Result<u64, SnapshotError> {
        copy_lines(&self.database, selection, sink).await
    }
}
