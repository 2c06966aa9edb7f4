//! Lists evaluations: `GET /v1/evaluations`.

use std::sync::Arc;

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
use super::reading_places::{ReadingPlace, ReadingPlaces};
use crate::domain::day::{Day, PackedScores, day_of};
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::matcher::needs_rows;
use crate::domain::ranking::{Ranking, rank};
use crate::domain::sort_value::sort_value;
use crate::domain::summary::{count, lack_texts};
use crate::store::{DayCache, EvaluationStore, FoundDays, ListPosition, ListSelection, RankRange};

/// Rows of days that changed which a list reads for its total: some ten milliseconds. During an import of years there are many
/// more.
const MAX_CHANGED_ROWS: u64 = 20_000;

/// So many rows are sorted in some milliseconds, whatever their values.
const FEW_ROWS: u64 = 1_000;

/// Rows that are read for each wanted one at first, where columns lack the texts that filters compare; and how many times as many
/// where these were too few.
const ROWS_FOR_TEXTS: usize = 16;
const MORE_ROWS: usize = 8;

/// Rows beyond which the database finds a page sooner.
const MAX_RANKED: usize = 20_000;

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
    pub(crate) places: &'s ReadingPlaces,
    pub(crate) organization_id: OrganizationId,
}

/// A page of the list.
pub(crate) async fn list_evaluations(
    reading: Reading<'_>,
    keys: &SigningKeys,
    query: ListQuery,
) -> Result<EvaluationPage, ListEvaluationsError> {
    let cursors = ListCursors::new(keys, reading.organization_id, &query.filters, query.sort);
    let cursor = query.cursor.as_deref().map(|cursor| cursors.open(cursor)).transpose()?;
    let after = cursor.map(|cursor| cursor.after);
    let wanted = query.limit.saturating_add(1);
    let sort = query.sort;
    let selection = ListSelection {
        organization_id: reading.organization_id,
        filters: query.filters,
        sort,
        after,
        backwards: false,
        ranks: None,
    };
    // The first page has counted: later pages say the same number.
    let known = cursor.map(|cursor| cursor.total);
    let (total, mut found) = list(&reading, selection, known, wanted).await?;
    let has_next_page = found.len() > query.limit as usize;
    found.truncate(query.limit as usize);
    let last = found.last().filter(|_| has_next_page);
    let next_cursor = last.map(|last| cursors.seal(&ListCursor { after: position(last, sort), total }));
    let page_info = PageInfo { has_next_page, limit: query.limit, next_cursor };
    Ok(EvaluationPage { data: found.into_iter().map(EvaluationFacts::into_item).collect(), page_info, total })
}

/// The first `wanted` rows of a part of a list, and the number of rows of the whole list.
///
/// The columns of days say where these rows are: the database would sort all rows that share a value of the sort key. Where columns lack
/// the texts that filters compare, the first rows of any text are read, until enough of them have it. The database alone finds rows by
/// date where the filters say nothing else or compare texts, those of lists with few rows, and those of incomplete columns.
pub(crate) async fn list(
    reading: &Reading<'_>,
    selection: ListSelection,
    known: Option<Total>,
    wanted: u32,
) -> Result<(Total, Vec<EvaluationFacts>), ListEvaluationsError> {
    let by_text = needs_rows(&selection.filters);
    if selection.sort.key == SortKey::StartedAt && (by_text || selection.filters.is_period_only()) {
        let total = match known {
            Some(known) => known,
            None => count_list(reading, &selection.filters).await?,
        };
        return Ok((total, reading.store.list(selection, wanted).await?));
    }
    let known = match known {
        None if by_text => Some(count_rows(reading, &selection.filters).await?),
        known => known,
    };
    let mut rows = wanted as usize * if by_text { ROWS_FOR_TEXTS } else { 1 };
    while rows <= MAX_RANKED && known.is_none_or(|known| known.count > FEW_ROWS) {
        let Some(Ranking { total, ranks, is_end }) = rank_columns(reading, &selection, rows).await? else {
            break;
        };
        let total = known.unwrap_or(Total { count: total, exact: true });
        let Some(ranks) = RankRange::of(&ranks) else { return Ok((total, Vec::new())) };
        let part = ListSelection { ranks: Some(Arc::new(ranks)), ..selection.clone() };
        let found = reading.store.list(part, wanted).await?;
        // Too few: the others have other texts, or were removed since the columns were read.
        if is_end || found.len() >= wanted as usize {
            return Ok((total, found));
        }
        rows *= MORE_ROWS;
    }
    let total = match known {
        Some(known) => known,
        None => count_rows(reading, &selection.filters).await?,
    };
    Ok((total, reading.store.list(selection, wanted).await?))
}

/// The ranks of the first `rows` behind the beginning of a page; `None` where the columns of days are not complete.
async fn rank_columns(
    reading: &Reading<'_>,
    selection: &ListSelection,
    rows: usize,
) -> Result<Option<Ranking>, ListEvaluationsError> {
    let Some((days, place)) = read_columns(reading, &selection.filters).await? else { return Ok(None) };
    let ListSelection { filters, sort, backwards, .. } = selection.clone();
    let after = selection.after.map(|after| after.rank(sort));
    // Up to millions of rows: too long for an async worker thread.
    let ranking = blocking(move || {
        let ranking = rank(&days, &filters, sort, after, backwards, rows);
        drop((days, place));
        ranking
    });
    Ok(Some(ranking.await?))
}

/// Rows of a list: all of them, counted in the columns of days; or up to [`MAX_COUNTED`] where columns do not say it, for filters that
/// compare texts which these lack, and while days with many rows change.
pub(crate) async fn count_list(
    reading: &Reading<'_>,
    filters: &EvaluationFilters,
) -> Result<Total, ListEvaluationsError> {
    let columns = if needs_rows(filters) { None } else { read_columns(reading, filters).await? };
    let Some((days, place)) = columns else { return Ok(count_rows(reading, filters).await?) };
    let filters = filters.clone();
    let count = blocking(move || {
        let count = count(&filters, &days);
        drop((days, place));
        count
    });
    Ok(Total { count: count.await?, exact: true })
}

/// The columns of the days of a filter's period; `None` where they lack days that change, or texts that the filters compare.
async fn read_columns(
    reading: &Reading<'_>,
    filters: &EvaluationFilters,
) -> Result<Option<(Vec<(i64, Arc<Day>)>, ReadingPlace)>, ListEvaluationsError> {
    let place = reading.places.take(reading.organization_id).await?;
    let FoundDays { days, is_complete } = reading
        .store
        .days(reading.organization_id, period(filters), Some(MAX_CHANGED_ROWS), reading.days.clone())
        .await?;
    Ok((is_complete && !lack_texts(&days, filters)).then_some((days, place)))
}

/// Up to [`MAX_COUNTED`] rows.
async fn count_rows(reading: &Reading<'_>, filters: &EvaluationFilters) -> Result<Total, DatabaseError> {
    let selection = ListSelection {
        organization_id: reading.organization_id,
        filters: filters.clone(),
        sort: Sort::default(),
        after: None,
        backwards: false,
        ranks: None,
    };
    let count = reading.store.count(selection, MAX_COUNTED + 1).await?;
    Ok(Total { count: count.min(MAX_COUNTED), exact: count <= MAX_COUNTED })
}

/// The days that a filter's period touches, with all of their evaluations, or those that the filters select. The caller holds a
/// place.
pub(crate) async fn read_days(
    reading: &Reading<'_>,
    filters: &EvaluationFilters,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    let organization_id = reading.organization_id;
    if !needs_rows(filters) {
        let found = reading.store.days(organization_id, period(filters), None, reading.days.clone()).await?;
        if !lack_texts(&found.days, filters) {
            return Ok(found.days);
        }
    }
    reading.store.selected_days(organization_id, filters.clone()).await
}

/// The first and the last day of a filter's period.
fn period(filters: &EvaluationFilters) -> (i64, i64) {
    let last_moment = |to: Timestamp| to.plus_millis(-1);
    (filters.from.map_or(0, day_of), day_of(filters.to.map_or(Timestamp::MAX, last_moment)))
}

pub(crate) fn position(facts: &EvaluationFacts, sort: Sort) -> ListPosition {
    let scores = PackedScores::of(facts.evaluation.scores.as_ref());
    let value = sort_value(sort.key, facts.evaluation.facets, scores).map(i64::from);
    ListPosition { value, started_at: facts.ticket.started_at, ticket_id: facts.ticket.ticket_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_that_ends_at_midnight_ends_with_the_day_before() {
        let of = |from: i64, to: i64| {
            let moment = |millis| Some(Timestamp::saturating_from_millis(millis));
            period(&EvaluationFilters { from: moment(from), to: moment(to), ..EvaluationFilters::default() })
        };
        assert_eq!(of(86_400_000, 3 * 86_400_000), (1, 2));
        assert_eq!(of(86_400_001, 3 * 86_400_000 + 1), (1, 3));
        assert_eq!(period(&EvaluationFilters::default()).1, day_of(Timestamp::MAX));
    }
}
