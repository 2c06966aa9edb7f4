//! The stores on PostgreSQL.

mod arrivals;
mod copied_lines;
mod jobs;
mod leases;
mod removal;
mod rows;
mod schema;
mod snapshot;

use assay_contracts::ids::{ExportId, OrganizationId, TicketId};
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, Postgres};
use async_trait::async_trait;
use diesel::Connection;

use super::{
    Announces, Created, Creation, ExpiredFile, ExportStore, GivenUp, LineSink, ReceivedRow, Selection,
    SnapshotError, UncountedJob, WorkStore,
};
use crate::domain::job::Job;
use crate::domain::lease::{Claim, ClaimTerms, FinishedFile};
use crate::domain::position::Position;
use crate::domain::removal::DeletedRow;

/// Both stores.
pub(super) struct PostgresStore {
    database: Postgres,
    announces: Announces,
}

impl PostgresStore {
    pub(super) fn new(database: Postgres, announces: Announces) -> Self {
        Self { database, announces }
    }
}

#[async_trait]
impl ExportStore for PostgresStore {
    async fn create(&self, creation: Creation) -> Result<Created, DatabaseError> {
        self.database.run(move |connection| jobs::create(connection, &creation)).await
    }

    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Job>, DatabaseError> {
        self.database.run(move |connection| jobs::page(connection, organization_id, after, limit)).await
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
        self.database.run(move |connection| jobs::find(connection, id)).await
    }

    async fn uncounted_jobs(&self, limit: u32) -> Result<Vec<UncountedJob>, DatabaseError> {
        self.database.run(move |connection| jobs::uncounted(connection, limit)).await
    }

    async fn set_awaited(&self, id: ExportId, evaluations: i64) -> Result<(), DatabaseError> {
        self.database.run(move |connection| jobs::set_awaited(connection, id, evaluations)).await
    }

    async fn record_rows(&self, rows: Vec<ReceivedRow>, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.run(move |connection| rows::record(connection, rows, now)).await
    }

    async fn delete_rows(&self, rows: Vec<DeletedRow>, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.run(move |connection| removal::delete_rows(connection, rows, now)).await
    }

    async fn remove_older_rows(
        &self,
        organization_id: OrganizationId,
        before: TicketId,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        let limit = i64::from(limit);
        self.database
            .run(move |connection| removal::remove_older(connection, organization_id, before, limit))
            .await
    }

    async fn forget_deletions(&self, before: Timestamp, limit: u32) -> Result<usize, DatabaseError> {
        let limit = i64::from(limit);
        self.database.run(move |connection| removal::forget_deletions(connection, before, limit)).await
    }

    async fn expired_files(&self, now: Timestamp, limit: u32) -> Result<Vec<ExpiredFile>, DatabaseError> {
        self.database.run(move |connection| jobs::expired_files(connection, now, limit)).await
    }

    async fn file_removed(&self, id: ExportId, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.run(move |connection| jobs::file_removed(connection, id, now)).await
    }

    async fn prune(&self, now: Timestamp) -> Result<usize, DatabaseError> {
        self.database.run(move |connection| rows::prune(connection, now)).await
    }

    async fn give_up_arrivals(&self, limit: Timestamp) -> Result<Vec<GivenUp>, DatabaseError> {
        self.database.run(move |connection| arrivals::give_up(connection, limit)).await
    }

    async fn ensure_partitions(&self, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.run(move |connection| rows::ensure_partitions(connection, now)).await
    }
}

#[async_trait]
impl WorkStore for PostgresStore {
    async fn claim(&self, terms: ClaimTerms) -> Result<Option<Claim>, DatabaseError> {
        self.database.run(move |connection| leases::claim(connection, terms)).await
    }

    async fn heartbeat(
        &self,
        claim: &Claim,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let claim = claim.clone();
        self.database.run(move |connection| leases::heartbeat(connection, &claim, now, until)).await
    }

    async fn complete(
        &self,
        claim: &Claim,
        file: FinishedFile,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let (claim, announces) = (claim.clone(), self.announces);
        self.database
            .run(move |connection| {
                connection
                    .transaction(|connection| leases::complete(connection, &claim, &file, now, announces))
            })
            .await
    }

    async fn fail(&self, claim: &Claim, message: &str, now: Timestamp) -> Result<bool, DatabaseError> {
        let (claim, message, announces) = (claim.clone(), message.to_owned(), self.announces);
        self.database
            .run(move |connection| {
                connection
                    .transaction(|connection| leases::fail(connection, &claim, &message, now, announces))
            })
            .await
    }

    async fn retry_later(
        &self,
        claim: &Claim,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        let claim = claim.clone();
        self.database.run(move |connection| leases::let_go(connection, &claim, due, 0, now)).await
    }

    async fn hand_back(&self, claim: &Claim, now: Timestamp) -> Result<bool, DatabaseError> {
        let claim = claim.clone();
        self.database.run(move |connection| leases::let_go(connection, &claim, now, 1, now)).await
    }

    async fn fail_exhausted(
        &self,
        max_tries: u32,
        message: &str,
        now: Timestamp,
    ) -> Result<usize, DatabaseError> {
        let (message, announces) = (message.to_owned(), self.announces);
        self.database
            .run(move |connection| {
                connection.transaction(|connection| {
                    leases::fail_exhausted(connection, max_tries, &message, now, announces)
                })
            })
            .await
    }

    async fn set_file_period(
        &self,
        organization_id: OrganizationId,
        period: Period,
        limit: u32,
    ) -> Result<usize, DatabaseError> {
        let limit = i64::from(limit);
        self.database
            .run(move |connection| removal::set_file_period(connection, organization_id, period, limit))
            .await
    }

    async fn missing_evaluations(&self, id: ExportId) -> Result<Option<i64>, DatabaseError> {
        self.database.run(move |connection| rows::missing(connection, id)).await
    }

    async fn copy_lines(&self, selection: Selection, sink: LineSink) -> Result<u64, SnapshotError> {
        let (database, runtime) = (self.database.clone(), tokio::runtime::Handle::current());
        let cancel = move |backend| {
            // On a thread that may block.
            let cancelled = database.run(move |connection| snapshot::cancel(connection, backend));
            if let Err(error) = runtime.block_on(cancelled) {
                tracing::warn!(cause = %error, "an export that was given up is read to its end");
            }
        };
        self.database
            .run_long(move |connection| snapshot::copy_lines(connection, selection, sink, cancel))
            .await
    }
}
