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
    /// Only rows with these ranks, which may be more than the list needs.
    pub ranks: Option<Arc<RankRange>>,
}

/// The ranks of a part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankRange {
    /// When the conversations started, in milliseconds.
    pub moments: BTreeSet<i64>,
    /// The last one.
    pub last: Rank,
}

impl ListPosition {
    /// The rank of its row.
    pub fn rank(&self, sort: Sort) -> Rank {
        // Values of sort keys are below 128.
        let value = self.value.and_then(|value| u8::try_from(value).ok());
        Rank::new(sort, value, self.started_at.as_millis())
    }
}

impl RankRange {
    /// `None` without ranks.
    pub fn of(ranks: &[Rank]) -> Option<Self> {
        let last = *ranks.last()?;
        Some(Self { moments: ranks.iter().map(|rank| rank.started_at()).collect(), last })
    }
}

/// The days of a period with their evaluations, in ascending order.
#[derive(Debug)]
pub struct FoundDays {
    pub days: Vec<(i64, Arc<Day>)>,
    /// `false`: the days that changed are left out, because they have too many rows.
    pub is_complete: bool,
}

/// A day whose columns lack a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkedDay {
    pub organization_id: OrganizationId,
    pub day: i64,
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

    /// The days with evaluations between two days, both included, as of one moment. Days that changed are read from their rows,
    /// unless there are more than `max_changed_rows`, or a day that no columns were made of yet: the number of its rows is unknown.
    async fn days(
        &self,
        organization_id: OrganizationId,
        between: (i64, i64),
        max_changed_rows: Option<u64>,
        cache: Arc<DayCache>,
    ) -> Result<FoundDays, DatabaseError>;

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

    /// The day with the oldest mark that was not refreshed since `before` and is none of `except`.
    async fn next_marked_day(
        &self,
        before: Timestamp,
        except: Vec<MarkedDay>,
    ) -> Result<Option<MarkedDay>, DatabaseError>;

    /// Puts the rows of a day with marks into columns.
    async fn refresh_day(&self, marked: MarkedDay, now: Timestamp) -> Result<(), DatabaseError>;
}
