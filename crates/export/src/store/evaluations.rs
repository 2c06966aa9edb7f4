//! What lists and summaries ask of the store, and what it answers.

use std::collections::BTreeSet;
use std::sync::Arc;

use assay_contracts::evaluations::{EvaluationFilters, Sort};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;

use crate::domain::day::Day;
use crate::domain::ranking::{Rank, ReadDirection};

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
    /// The row at this position is not part of the selection.
    pub position: Option<ListPosition>,
    pub direction: ReadDirection,
    /// Narrows the rows; more may be left than the list needs.
    pub rank_bound: Option<Arc<RankBound>>,
}

/// Rows that started at one of these times and do not come after `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankBound {
    /// Start times of the conversations, in milliseconds.
    pub start_times: BTreeSet<i64>,
    /// The last rank in the direction of reading.
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
