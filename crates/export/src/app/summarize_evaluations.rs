//! Summarizes evaluations: `GET /v1/evaluations/summary`.

use assay_contracts::evaluations::{
    Coverage, EvaluationFilters, Measures, PeriodSummary, Summary, SummaryQuery,
};
use assay_contracts::ids::TicketId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{Interrupted, blocking};

use super::list_evaluations::{ReadContext, read_days};
use crate::domain::summary::{Days, TooManyParts, summarize};

#[derive(Debug, thiserror::Error)]
pub(crate) enum SummarizeError {
    #[error(transparent)]
    Parts(#[from] TooManyParts),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<Interrupted> for SummarizeError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Database(interrupted.into())
    }
}

/// The coverage has no pending imports: only ingest knows them.
pub(crate) async fn summarize_evaluations(
    context: ReadContext<'_>,
    query: SummaryQuery,
) -> Result<Summary, SummarizeError> {
    let compared = query.compared_filters();
    let permit = context.permits.acquire(context.organization_id).await?;
    let days = read_days(&context, &query.filters).await?;
    let compared_days = match &compared {
        Some(filters) => Some(read_days(&context, filters).await?),
        None => None,
    };
    // Up to millions of rows: too long for an async worker thread.
    blocking(move || {
        let mut summary = summarize(&query, &days)?;
        if let (Some(filters), Some(days)) = (compared, compared_days) {
            summary.compared = Some(summarize_compared(&query, filters, &days)?);
        }
        summary.coverage = query.filters.is_period_only().then(|| coverage(&summary.totals));
        drop((days, permit));
        Ok(summary)
    })
    .await?
}

/// Evaluations of the period whose tickets were imported with this id or later.
pub(crate) async fn count_evaluations(
    context: ReadContext<'_>,
    filters: EvaluationFilters,
    since: TicketId,
) -> Result<u64, DatabaseError> {
    context.store.count_since(context.organization_id, filters, since).await
}

fn summarize_compared(
    query: &SummaryQuery,
    filters: EvaluationFilters,
    days: &Days,
) -> Result<PeriodSummary, TooManyParts> {
    let query = SummaryQuery { filters, step: query.step, by: Vec::new(), compare: None };
    let Summary { period, totals, series, .. } = summarize(&query, days)?;
    Ok(PeriodSummary { period, totals, series })
}

fn coverage(totals: &Measures) -> Coverage {
    let Measures { count, scored, not_applicable, failed, .. } = *totals;
    Coverage { imported: count, scored, not_applicable, failed, pending: 0 }
}
