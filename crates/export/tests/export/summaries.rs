//! `GET /internal/v1/evaluations/summary`: the period to compare with.

use anyhow::{Context as _, Result};
use assay_contracts::evaluations::{
    Comparison, EvaluationFilters, EvaluationItem, Step, Summary, SummaryQuery, encode_query,
};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_export::domain::evaluation_facts::EvaluationFacts;
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;

use crate::evaluation_lists::{UNKNOWN_ETAG, get};
use crate::random_evaluations::{Random, satisfies};
use crate::test_app::TestApp;
use crate::test_database::record;

/// From the days of the samples, in November 2026, to the same dates of the year before: without 29 February.
const YEAR_MILLIS: i64 = 365 * DAY_MILLIS;

async fn summary(app: &TestApp, organization: OrganizationId, query: &SummaryQuery) -> Result<Summary> {
    let path = format!("/summary?{}", encode_query(query.to_pairs()));
    Ok(get(app, organization, &path, UNKNOWN_ETAG).await?.error_for_status()?.json().await?)
}

/// The period that is compared with the one from `from` to `to`.
fn earlier(compare: Comparison, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
    match compare {
        Comparison::Previous => (from.plus_millis(-to.millis_since(from)), from),
        Comparison::Year => (from.plus_millis(-YEAR_MILLIS), to.plus_millis(-YEAR_MILLIS)),
    }
}

/// Conversations of nine days, half of them a year earlier.
fn events_of_two_years(organization: OrganizationId, random: &mut Random) -> Vec<ConversationEvaluated> {
    let event = |number: u32| {
        let mut event = random.event(organization);
        if number.is_multiple_of(2) {
            event.ticket.started_at = event.ticket.started_at.plus_millis(-YEAR_MILLIS);
        }
        event
    };
    (0..120).map(event).collect()
}

/// Whatever the filters and the parts: the earlier period has the numbers of a summary of its own.
async fn compared_period_has_the_numbers_of_its_own_summary(app: TestApp) -> Result<()> {
    let (organization, mut random) = (new_id(), Random::new(37));
    let events = events_of_two_years(organization, &mut random);
    record(&app.exports, &events).await?;
    let rows: Vec<EvaluationItem> =
        events.iter().map(|event| EvaluationFacts::of(event).into_item()).collect();
    let mut compared_rows = [0, 0];
    for _ in 0..40 {
        let (one, other) = (random.moment(), random.moment());
        let (from, to) = (one.min(other), one.max(other));
        let filters = EvaluationFilters { from: Some(from), to: Some(to), ..random.filters() };
        let step = random.choose(&[None, Some(Step::Day), Some(Step::Week)]);
        for (kind, compare) in [Comparison::Previous, Comparison::Year].into_iter().enumerate() {
            let query =
                SummaryQuery { filters: filters.clone(), by: Vec::new(), step, compare: Some(compare) };
            let case = encode_query(query.to_pairs());
            let compared = summary(&app, organization, &query).await?.compared.context(case.clone())?;
            let (from, to) = earlier(compare, from, to);
            let filters = EvaluationFilters { from: Some(from), to: Some(to), ..filters.clone() };
            let selected = rows.iter().filter(|row| satisfies(row, &filters)).count() as u64;
            assert_eq!(compared.totals.count, selected, "{case}");
            compared_rows[kind] += selected;
            let own = summary(&app, organization, &SummaryQuery { filters, compare: None, ..query }).await?;
            assert_eq!((compared.period, compared.totals), (own.period, own.totals), "{case}");
            assert_eq!(compared.series, own.series, "{case}");
        }
    }
    assert!(compared_rows.iter().all(|rows| *rows > 0), "nothing was compared: {compared_rows:?}");
    Ok(())
}

on_both_databases! { TestApp {
    compared_period_has_the_numbers_of_its_own_summary,
} }
