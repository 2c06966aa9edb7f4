//! The store of lists and summaries.

use std::sync::Arc;

use assay_contracts::evaluations::{EvaluationFilters, Sort};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use async_trait::async_trait;

use super::DayCache;
use crate::domain::day::Day;
use crate::domain::evaluation_facts::EvaluationFacts;

/// A place in a list: the sort key's value (`None` comes last), the conversation's date and the ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPosition {
    pub value: Option<i64>,
    pub started_at: Timestamp,
    pub ticket_id: TicketId,
}

/// A part of a list.
#[derive(Debug, Clone)]
pub struct ListSelection {
    pub organization_id: OrganizationId,
    pub filters: EvaluationFilters,
    pub sort: Sort,
    /// Rows behind this place; all without it.
    pub after: Option<ListPosition>,
    /// From the end of the list: rows before `after`, the nearest first.
    pub backwards: bool,
    /// Only rows with one of these values of the sort key.
    pub values: Option<Vec<i64>>,
}

#[async_trait]
pub trait EvaluationStore: Send + Sync {
    /// At most `limit` rows in order.
    async fn list(&self, selection: ListSelection, limit: u32)
    -> Result<Vec<EvaluationFacts>, DatabaseError>;

    /// Number of rows, counted up to `limit`.
    async fn count(&self, selection: ListSelection, limit: u64) -> Result<u64, DatabaseError>;

    /// The row of one ticket, and whether the filters select it.
    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
        filters: EvaluationFilters,
    ) -> Result<Option<(EvaluationFacts, bool)>, DatabaseError>;

    /// The days with evaluations between two days, both included, in ascending order, as of one moment.
    async fn days(
        &self,
        organization_id: OrganizationId,
        between: (i64, i64),
        cache: Arc<DayCache>,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError>;

    /// The days of the rows that the filters select.
    async fn selected_days(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError>;

    /// Number of rows of the period and later than this ticket id.
    async fn count_since(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
        since: TicketId,
    ) -> Result<u64, DatabaseError>;

    /// Puts the rows of one day with marks, not refreshed since `before`, into columns. `false` when there is none.
    async fn refresh_day(&self, before: Timestamp, now: Timestamp) -> Result<bool, DatabaseError>;
}
