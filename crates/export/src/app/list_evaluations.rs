//! Lists evaluations: `GET /v1/evaluations`.

use std::sync::Arc;

use assay_contracts::evaluation::ChargeAssessment;
use assay_contracts::evaluations::{
    EvaluationFilters, EvaluationPage, ListQuery, MAX_COUNTED, Sort, SortKey, Total,
};
use assay_contracts::ids::OrganizationId;
use assay_contracts::page::PageInfo;
use assay_contracts::time::Timestamp;
use assay_platform::auth::SigningKeys;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{Interrupted, blocking};
use assay_platform::web::cursor::InvalidCursor;

use super::list_cursor::{ListCursor, ListCursors};
use crate::domain::day::{Row, day_of};
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::facets;
use crate::domain::matcher::{Matcher, needs_rows};
use crate::domain::summary::{Days, count};
use crate::store::{DayCache, EvaluationStore, ListPosition, ListSelection};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ListEvaluationsError {
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<Interrupted> for ListEvaluationsError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Database(interrupted.into())
    }
}

/// Where evaluations are read.
#[derive(Clone)]
pub(crate) struct Reading<'s> {
    pub(crate) store: &'s dyn EvaluationStore,
    pub(crate) days: &'s Arc<DayCache>,
    pub(crate) organization_id: OrganizationId,
}

/// Rows of a list by the value of its sort key; the last number is of those without one.
type Histogram = Vec<(Option<i64>, u64)>;

/// A page of the list.
pub(crate) async fn list_evaluations(
    reading: Reading<'_>,
    keys: &SigningKeys,
    query: ListQuery,
) -> Result<EvaluationPage, ListEvaluationsError> {
    let cursors = ListCursors::new(keys, reading.organization_id, &query.filters, query.sort);
    let cursor = query.cursor.as_deref().map(|cursor| cursors.open(cursor)).transpose()?;
    let after = cursor.as_ref().map(|cursor| cursor.after);
    let (total, histogram) = match cursor {
        // The first page has counted: later pages say the same number.
        Some(cursor) if query.sort.key == SortKey::StartedAt => (cursor.total, None),
        _ => count_list(&reading, &query.filters, query.sort).await?,
    };
    let total = cursor.map_or(total, |cursor| cursor.total);
    let mut selection = ListSelection {
        organization_id: reading.organization_id,
        filters: query.filters,
        sort: query.sort,
        after,
        backwards: false,
        values: None,
    };
    let wanted = query.limit.saturating_add(1);
    if let Some(histogram) = histogram {
        selection.values = enough_values(histogram, query.sort, after.as_ref(), u64::from(wanted));
    }
    let mut found = reading.store.list(selection.clone(), wanted).await?;
    if selection.values.take().is_some() && found.len() < wanted as usize {
        // Rows were removed since they were counted.
        found = reading.store.list(selection, wanted).await?;
    }
    let has_next_page = found.len() > query.limit as usize;
    found.truncate(query.limit as usize);
    let last = found.last().filter(|_| has_next_page);
    let next_cursor = last.map(|last| cursors.seal(&ListCursor { after: position(last, query.sort), total }));
    let page_info = PageInfo { has_next_page, limit: query.limit, next_cursor };
    Ok(EvaluationPage { data: found.into_iter().map(EvaluationFacts::into_item).collect(), page_info, total })
}

/// Rows of a list: all of them from the columns of days, or, where filters compare texts that those lack, up to
/// [`MAX_COUNTED`]. With the histogram of the sort key, where it needs one.
pub(crate) async fn count_list(
    reading: &Reading<'_>,
    filters: &EvaluationFilters,
    sort: Sort,
) -> Result<(Total, Option<Histogram>), ListEvaluationsError> {
    if needs_rows(filters) {
        let selection = ListSelection {
            organization_id: reading.organization_id,
            filters: filters.clone(),
            sort,
            after: None,
            backwards: false,
            values: None,
        };
        let count = reading.store.count(selection, MAX_COUNTED + 1).await?;
        return Ok((Total { count: count.min(MAX_COUNTED), exact: count <= MAX_COUNTED }, None));
    }
    let days = read_days(reading, filters).await?;
    let filters = filters.clone();
    // Up to millions of rows: too long for an async worker thread.
    let counted = blocking(move || count_days(&days, &filters, sort)).await?;
    Ok(counted)
}

/// The days that a filter's period touches.
pub(crate) async fn read_days(
    reading: &Reading<'_>,
    filters: &EvaluationFilters,
) -> Result<Arc<Days>, DatabaseError> {
    if needs_rows(filters) {
        return Ok(reading.store.selected_days(reading.organization_id, filters.clone()).await?.into());
    }
    let first = filters.from.map_or(0, day_of);
    let last = filters.to.map_or(day_of(Timestamp::MAX), day_of);
    let days = reading.store.days(reading.organization_id, (first, last), reading.days.clone()).await?;
    Ok(days.into())
}

fn count_days(days: &Days, filters: &EvaluationFilters, sort: Sort) -> (Total, Option<Histogram>) {
    let matcher = Matcher::new(filters);
    let Some(value) = value_of(sort.key) else {
        return (Total { count: count(&matcher, days, |_| {}), exact: true }, None);
    };
    let mut numbers = [0_u64; 128];
    let total = count(&matcher, days, |row| numbers[value(row) as usize & 127] += 1);
    let stored = if sort.key == SortKey::Confidence { -1 } else { 0 };
    let mut histogram: Histogram = (1_u8..128)
        .filter(|value| numbers[usize::from(*value)] > 0)
        .map(|value| (Some(i64::from(value) + stored), numbers[usize::from(value)]))
        .collect();
    if sort.descending {
        histogram.reverse();
    }
    histogram.push((None, numbers[0]));
    (Total { count: total, exact: true }, Some(histogram))
}

/// The value of the sort key in columns; 0 where there is none.
fn value_of(key: SortKey) -> Option<fn(&Row) -> u32> {
    match key {
        SortKey::StartedAt => None,
        SortKey::Axis => Some(|row| row.scores.tenths(0)),
        SortKey::ResolutionAccuracy => Some(|row| row.scores.tenths(1)),
        SortKey::InteractionEffort => Some(|row| row.scores.tenths(2)),
        SortKey::HandoffSmoothness => Some(|row| row.scores.tenths(3)),
        // One more than the confidence, so that 0 is a row without one.
        SortKey::Confidence => {
            Some(|row| if row.scores.is_scored() { row.scores.hundredths() + 1 } else { 0 })
        }
        SortKey::Charge => Some(|row| row.facets.code(facets::CHARGE)),
    }
}

/// The values that a page can have: from that of its beginning until there are `wanted` more rows. `None`: any.
fn enough_values(
    histogram: Histogram,
    sort: Sort,
    after: Option<&ListPosition>,
    wanted: u64,
) -> Option<Vec<i64>> {
    let is_before = |value: i64| match after.map(|after| after.value) {
        None => false,
        Some(None) => true,
        Some(Some(first)) => {
            if sort.descending {
                value > first
            } else {
                value < first
            }
        }
    };
    let (mut values, mut count) = (Vec::new(), 0);
    for (value, rows) in histogram {
        // Rows without a value are needed: no condition on values.
        let value = value?;
        if is_before(value) {
            continue;
        }
        values.push(value);
        // Some of the rows with the first value lie before the page.
        if after.is_none_or(|after| after.value != Some(value)) {
            count += rows;
        }
        if count >= wanted {
            return Some(values);
        }
    }
    None
}

pub(crate) fn position(facts: &EvaluationFacts, sort: Sort) -> ListPosition {
    let scores = facts.evaluation.scores;
    let value = match sort.key {
        SortKey::StartedAt => None,
        SortKey::Axis => scores.map(|scores| i64::from(scores.axis.tenths())),
        SortKey::ResolutionAccuracy => scores.map(|scores| i64::from(scores.resolution_accuracy.tenths())),
        SortKey::InteractionEffort => scores.map(|scores| i64::from(scores.interaction_effort.tenths())),
        SortKey::HandoffSmoothness => scores.map(|scores| i64::from(scores.handoff_smoothness.tenths())),
        SortKey::Confidence => scores.map(|scores| i64::from(scores.confidence.hundredths())),
        SortKey::Charge => facts
            .evaluation
            .facets
            .value::<ChargeAssessment>(facets::CHARGE)
            .map(|charge| i64::from(facets::code_of(charge))),
    };
    ListPosition { value, started_at: facts.ticket.started_at, ticket_id: facts.ticket.ticket_id }
}
