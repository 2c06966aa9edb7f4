//! Lists evaluations: `GET /v1/evaluations`.

use std::sync::Arc;

use assay_contracts::evaluations::{
    EvaluationFilters, EvaluationPage, ListQuery, MAX_COUNTED, Sort, SortKey, Total,
};
use assay_contracts::ids::OrganizationId;
use assay_contracts::page::PageInfo;
use assay_contracts::time::Timestamp;
use assay_platform::auth::KeyRing;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{Interrupted, blocking};
use assay_platform::web::cursor::InvalidCursor;

use super::list_cursor::{ListCursor, ListCursors};
use super::read_permits::{ReadPermit, ReadPermits};
use crate::domain::day::{Day, PackedScores, day_of};
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::matcher::needs_rows;
use crate::domain::ranking::{Ranking, ReadDirection, rank};
use crate::domain::sort_value::sort_value;
use crate::domain::summary::{count_matches, lack_texts};
use crate::store::{DayCache, EvaluationStore, FoundDays, ListPosition, ListSelection, RankBound};

/// Maximum number of rows of stale days that a list reads for its total: some ten milliseconds. While conversations of several
/// years are imported, there are many more.
const MAX_STALE_ROWS: u64 = 20_000;

/// The database sorts this many rows in some milliseconds, whatever their values.
const FEW_ROWS: u64 = 1_000;

/// For filters on texts that columns lack: the number of candidates for each wanted row, and the factor by which it grows while too
/// few candidates match.
const CANDIDATES_PER_ROW: usize = 16;
const CANDIDATE_GROWTH: usize = 8;

/// Maximum number of candidates: with more the database alone finds a page sooner.
const MAX_CANDIDATES: usize = 20_000;

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

/// What the use cases need to read the evaluations of an organization.
#[derive(Clone)]
pub(crate) struct ReadContext<'s> {
    pub(crate) store: &'s EvaluationStore,
    pub(crate) days: &'s Arc<DayCache>,
    pub(crate) permits: &'s ReadPermits,
    pub(crate) organization_id: OrganizationId,
}

impl ReadContext<'_> {
    /// A list, or its part after a position.
    pub(crate) fn selection(
        &self,
        filters: EvaluationFilters,
        sort: Sort,
        position: Option<ListPosition>,
    ) -> ListSelection {
        let (organization_id, direction) = (self.organization_id, ReadDirection::Forwards);
        ListSelection { organization_id, filters, sort, position, direction, rank_bound: None }
    }
}

/// A page of the list.
pub(crate) async fn list_evaluations(
    context: ReadContext<'_>,
    keys: &KeyRing,
    query: ListQuery,
) -> Result<EvaluationPage, ListEvaluationsError> {
    let cursors = ListCursors::new(keys, context.organization_id, &query.filters, query.sort);
    let cursor = query.cursor.as_deref().map(|cursor| cursors.decode(cursor)).transpose()?;
    let wanted = query.limit.saturating_add(1);
    let sort = query.sort;
    let selection = context.selection(query.filters, sort, cursor.map(|cursor| cursor.position));
    // Only the first page counts; later pages repeat its number.
    let known_total = cursor.map(|cursor| cursor.total);
    let (total, mut found) = list(&context, selection, known_total, wanted).await?;
    let has_next_page = found.len() > query.limit as usize;
    found.truncate(query.limit as usize);
    let last = found.last().filter(|_| has_next_page);
    let next_cursor =
        last.map(|last| cursors.encode(&ListCursor { position: position_of(last, sort), total }));
    let page_info = PageInfo { has_next_page, limit: query.limit, next_cursor };
    Ok(EvaluationPage { data: found.into_iter().map(EvaluationFacts::into_item).collect(), page_info, total })
}

/// The first `wanted` rows of a part of a list, and the number of rows of the whole list: `known_total` if it was counted before.
///
/// Rows are found in one of two ways:
/// - The columns of days give the ranks of these rows, and the database reads only rows with these ranks. If the filters compare texts
///   that columns lack, more rows (candidates) are ranked and read until enough of them match.
/// - The database finds them alone, which may sort all rows that share a value of the sort key: lists by date that are filtered by
///   texts or only by period, short lists, lists with incomplete columns, and those with too few matches among the candidates.
pub(crate) async fn list(
    context: &ReadContext<'_>,
    selection: ListSelection,
    known_total: Option<Total>,
    wanted: u32,
) -> Result<(Total, Vec<EvaluationFacts>), ListEvaluationsError> {
    let by_text = needs_rows(&selection.filters);
    if selection.sort.key == SortKey::StartedAt && (by_text || selection.filters.is_period_only()) {
        let total = match known_total {
            Some(total) => total,
            None => count_list(context, &selection.filters).await?,
        };
        return Ok((total, context.store.list(selection, wanted).await?));
    }
    // Without filters by text, the rows are counted while they are ranked.
    let known_total = match known_total {
        None if by_text => Some(count_rows(context, &selection.filters).await?),
        total => total,
    };
    let mut candidates = wanted as usize * if by_text { CANDIDATES_PER_ROW } else { 1 };
    while candidates <= MAX_CANDIDATES && known_total.is_none_or(|total| total.count > FEW_ROWS) {
        let ranking = rank_columns(context, &selection, candidates).await?;
        let Some(Ranking { total: ranked_total, ranks, is_end }) = ranking else { break };
        let total = known_total.unwrap_or(Total { count: ranked_total, exact: true });
        let Some(bound) = RankBound::of(&ranks) else { return Ok((total, Vec::new())) };
        let part = ListSelection { rank_bound: Some(Arc::new(bound)), ..selection.clone() };
        let found = context.store.list(part, wanted).await?;
        // Fewer rows: the other candidates have other texts, or were removed after the columns were read.
        if is_end || found.len() >= wanted as usize {
            return Ok((total, found));
        }
        candidates *= CANDIDATE_GROWTH;
    }
    let total = match known_total {
        Some(total) => total,
        None => count_rows(context, &selection.filters).await?,
    };
    // Without ranks the database sorts all rows that share a value of the sort key: a slow list keeps a permit, not all connections.
    let _permit = context.permits.acquire(context.organization_id).await?;
    Ok((total, context.store.list(selection, wanted).await?))
}

/// The ranks of the first `wanted` rows of a selection; `None` if the columns of days are incomplete.
async fn rank_columns(
    context: &ReadContext<'_>,
    selection: &ListSelection,
    wanted: usize,
) -> Result<Option<Ranking>, ListEvaluationsError> {
    let Some((days, permit)) = read_columns(context, &selection.filters).await? else { return Ok(None) };
    let ListSelection { filters, sort, direction, .. } = selection.clone();
    let position = selection.position.map(|position| position.rank(sort));
    // Up to millions of rows: too long for an async worker thread.
    let ranking = blocking(move || {
        let ranking = rank(&days, &filters, sort, position, direction, wanted);
        drop((days, permit));
        ranking
    });
    Ok(Some(ranking.await?))
}

/// Number of rows of a list, counted in the columns of days; or in rows, up to [`MAX_COUNTED`], if the filters compare texts that
/// columns lack, or while too many rows are in stale days.
pub(crate) async fn count_list(
    context: &ReadContext<'_>,
    filters: &EvaluationFilters,
) -> Result<Total, ListEvaluationsError> {
    let columns = if needs_rows(filters) { None } else { read_columns(context, filters).await? };
    let Some((days, permit)) = columns else { return Ok(count_rows(context, filters).await?) };
    let filters = filters.clone();
    let count = blocking(move || {
        let count = count_matches(&filters, &days);
        drop((days, permit));
        count
    });
    Ok(Total { count: count.await?, exact: true })
}

/// The columns of the days of a filter's period; `None` if they lack stale days, or texts that the filters compare.
async fn read_columns(
    context: &ReadContext<'_>,
    filters: &EvaluationFilters,
) -> Result<Option<(Vec<(i64, Arc<Day>)>, ReadPermit)>, ListEvaluationsError> {
    let permit = context.permits.acquire(context.organization_id).await?;
    let FoundDays { days, is_complete } = context
        .store
        .days(context.organization_id, days_of(filters), Some(MAX_STALE_ROWS), context.days.clone())
        .await?;
    Ok((is_complete && !lack_texts(&days, filters)).then_some((days, permit)))
}

/// Number of rows, up to [`MAX_COUNTED`].
async fn count_rows(context: &ReadContext<'_>, filters: &EvaluationFilters) -> Result<Total, DatabaseError> {
    let selection = context.selection(filters.clone(), Sort::default(), None);
    let count = context.store.count(selection, MAX_COUNTED + 1).await?;
    Ok(Total { count: count.min(MAX_COUNTED), exact: count <= MAX_COUNTED })
}

/// The days of a filter's period, with all of their evaluations or only those that the filters select. The caller holds a permit.
pub(crate) async fn read_days(
    context: &ReadContext<'_>,
    filters: &EvaluationFilters,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    let organization_id = context.organization_id;
    if !needs_rows(filters) {
        let found = context.store.days(organization_id, days_of(filters), None, context.days.clone()).await?;
        if !lack_texts(&found.days, filters) {
            return Ok(found.days);
        }
    }
    context.store.rows_by_day(organization_id, filters.clone()).await
}

/// The first and the last day of a filter's period.
fn days_of(filters: &EvaluationFilters) -> (i64, i64) {
    let last_moment = |to: Timestamp| to.plus_millis(-1);
    (filters.from.map_or(0, day_of), day_of(filters.to.map_or(Timestamp::MAX, last_moment)))
}

pub(crate) fn position_of(facts: &EvaluationFacts, sort: Sort) -> ListPosition {
    let scores = PackedScores::of(facts.evaluation.scores.as_ref());
    let value = sort_value(sort.key, facts.evaluation.facets, scores).map(i64::from);
    ListPosition { value, started_at: facts.ticket.started_at, ticket_id: facts.ticket.id }
}

#[cfg(test)]
mod tests {
    use assay_contracts::time::DAY_MILLIS;

    use super::*;

    #[test]
    fn period_that_ends_at_midnight_ends_with_the_day_before() {
        let days_between = |from: i64, to: i64| {
            let moment = |millis| Some(Timestamp::saturating_from_millis(millis));
            days_of(&EvaluationFilters { from: moment(from), to: moment(to), ..EvaluationFilters::default() })
        };
        assert_eq!(days_between(DAY_MILLIS, 3 * DAY_MILLIS), (1, 2));
        assert_eq!(days_between(DAY_MILLIS + 1, 3 * DAY_MILLIS + 1), (1, 3));
        assert_eq!(days_of(&EvaluationFilters::default()).1, day_of(Timestamp::MAX));
    }
}
