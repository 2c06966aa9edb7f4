//! The store of lists and summaries.

use std::sync::Arc;

use assay_contracts::evaluations::EvaluationFilters;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{Database, DatabaseError, on_database};

#[cfg(feature = "distributed")]
use super::postgres;
use super::{DayCache, FoundDays, ListSelection, StaleDay, sqlite};
use crate::domain::day::Day;
use crate::domain::evaluation_facts::EvaluationFacts;

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct EvaluationStore {
    database: Database,
}

pub fn evaluation_store(database: &Database) -> EvaluationStore {
    EvaluationStore { database: database.clone() }
}

impl EvaluationStore {
    /// The first rows of the selection in the order of reading, at most `limit`.
    pub async fn list(
        &self,
        selection: ListSelection,
        limit: u32,
    ) -> Result<Vec<EvaluationFacts>, DatabaseError> {
        on_database!(self, read, evaluations::list(&selection, limit))
    }

    /// Number of rows, counted up to `limit`.
    pub async fn count(&self, selection: ListSelection, limit: u64) -> Result<u64, DatabaseError> {
        on_database!(self, read, evaluations::count(&selection, limit))
    }

    /// The row of one ticket, and whether the filters select it.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
        filters: EvaluationFilters,
    ) -> Result<Option<(EvaluationFacts, bool)>, DatabaseError> {
        on_database!(self, read, evaluations::find(organization_id, ticket_id, &filters))
    }

    /// The days with evaluations between two days (both included, as numbers), in one snapshot. Stale days are read from their rows,
    /// the others from their columns. With `max_stale_rows`, stale days are left out when they have more rows, or when one has no
    /// columns yet: the number of its rows is unknown.
    pub async fn days(
        &self,
        organization_id: OrganizationId,
        between: (i64, i64),
        max_stale_rows: Option<u64>,
        cache: Arc<DayCache>,
    ) -> Result<FoundDays, DatabaseError> {
        on_database!(self, read, days::days(organization_id, between, max_stale_rows, &cache))
    }

    /// The rows that the filters select, by day, as columns.
    pub async fn rows_by_day(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
        on_database!(self, read, days::rows_by_day(organization_id, &filters))
    }

    /// Number of rows with the ticket id `since` or a later one in the period of `filters`, whose other conditions are ignored.
    pub async fn count_since(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
        since: TicketId,
    ) -> Result<u64, DatabaseError> {
        on_database!(self, read, evaluations::count_since(organization_id, &filters, since))
    }

    /// The day that has been stale for longest, is not in `except`, and is due: it was never refreshed, or its last refresh and a
    /// millisecond for every ten of its rows lie before `before`. So large days, which take longer, are refreshed less often.
    pub async fn next_stale_day(
        &self,
        before: Timestamp,
        except: Vec<StaleDay>,
    ) -> Result<Option<StaleDay>, DatabaseError> {
        on_database!(self, read, days::next_stale(before, &except))
    }

    /// Writes the columns of a stale day from its rows.
    pub async fn refresh_day(&self, stale_day: StaleDay, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, days::refresh(stale_day, now))
    }
}
