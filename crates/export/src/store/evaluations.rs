//! The store of lists and summaries.

use std::collections::BTreeSet;
use std::sync::Arc;

use assay_contracts::evaluations::{EvaluationFilters, Sort};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use async_trait::async_trait;

use super::DayCache;
use crate::domain::day::Day;
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::ranking::Rank;

/// A position in a list: the sort key's value (`None` comes last), the conversation's date and the ticket.
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
    /// Rows after this position; `None`: from the beginning.
    pub after: Option<ListPosition>,
    /// Reverses the direction: rows before that position, the nearest first; from the end without a position.
    pub backwards: bool,
    /// Narrows the rows; more may be left than the list needs.
    pub ranks: Option<Arc<RankBound>>,
}

/// Rows that started at one of these times and do not come after `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankBound {
    /// Start times of the conversations, in milliseconds.
    pub start_times: BTreeSet<i64>,
    /// The last rank in the order of the list.
    pub last: Rank,
}

impl ListPosition {
    /// The rank of the row at this position.
    pub fn rank(&self, sort: Sort) -> Rank {
        // Values of sort keys are below 128.
        let value = self.value.and_then(|value| u8::try_from(value).ok());
        Rank::new(sort, value, self.started_at.as_millis())
    }
}

impl RankBound {
    /// `None` when `ranks` is empty.
    pub fn of(ranks: &[Rank]) -> Option<Self> {
        let last = *ranks.last()?;
        Some(Self { start_times: ranks.iter().map(|rank| rank.started_at()).collect(), last })
    }
}

/// The days of a period with their evaluations, in ascending order.
#[derive(Debug)]
pub struct FoundDays {
    pub days: Vec<(i64, Arc<Day>)>,
    /// `false`: the stale days are left out, because they have too many rows.
    pub is_complete: bool,
}

/// A day with rows that changed after its columns were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StaleDay {
    pub organization_id: OrganizationId,
    pub day: i64,
}

#[async_trait]
pub trait EvaluationStore: Send + Sync {
    /// The first rows of the selection in its order, at most `limit`.
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

    /// The days with evaluations between two days (both included, as numbers), in one snapshot. Stale days are read from their rows.
    /// They are left out when they have more than `max_stale_rows`, or when one has no columns yet: the number of its rows is unknown.
    async fn days(
        &self,
        organization_id: OrganizationId,
        between: (i64, i64),
        max_stale_rows: Option<u64>,
        cache: Arc<DayCache>,
    ) -> Result<FoundDays, DatabaseError>;

    /// The rows that the filters select, by day, as columns.
    async fn rows_by_day(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError>;

    /// Number of rows with the ticket id `since` or a later one in the period of `filters`, whose other conditions are ignored.
    async fn count_since(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
        since: TicketId,
    ) -> Result<u64, DatabaseError>;

    /// The day that has been stale for longest, was not refreshed after `before` and is not in `except`.
    async fn next_stale_day(
        &self,
        before: Timestamp,
        except: Vec<StaleDay>,
    ) -> Result<Option<StaleDay>, DatabaseError>;

    /// Writes the columns of a stale day from its rows.
    async fn refresh_day(&self, stale_day: StaleDay, now: Timestamp) -> Result<(), DatabaseError>;
}
