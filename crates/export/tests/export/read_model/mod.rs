//! Lists, summaries and files of any filter agree, while evaluations arrive, are deleted and expire.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod checks;
mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use assay_contracts::evaluations::{Dimension, Step, Summary, SummaryQuery};
use assay_contracts::ids::TicketId;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::EvaluationStore;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{number_on, on_both_databases};

pub use self::fixture::{ReadModel, refresh};
use crate::samples::deletion;

/// Filters of an ordinary test; `ten_thousand_filters_agree_on_postgres` checks more.
const FILTERS: u64 = 400;

async fn lists_summaries_and_files_of_any_filter_agree(mut model: ReadModel) -> Result<()> {
    check_filters(&mut model, FILTERS).await
}

#[expect(clippy::print_stderr, reason = "the longest run takes a quarter of an hour: it shows its progress")]
async fn check_filters(model: &mut ReadModel, count: u64) -> Result<()> {
    for index in 0..count {
        // More changes at the beginning, so that there are rows; later one before every fourth filter.
        let changes = if index < 20 { 4 } else { u64::from(index % 4 == 0) };
        for _ in 0..changes {
            model.step().await?;
        }
        model.check().await?;
        if index % 1_000 == 999 {
            eprintln!("{} filters agree", index + 1);
        }
    }
    Ok(())
}

async fn refreshed_days_are_not_stale(mut model: ReadModel) -> Result<()> {
    model.record(60).await?;
    let database = &model.test_database.database;
    assert!(number_on(database, "SELECT count(*) FROM stale_days").await? > 0);
    refresh(&model.evaluations, 1_000).await?;
    assert_eq!(number_on(database, "SELECT count(*) FROM stale_days").await?, 0);
    let (rows, in_days) = (
        number_on(database, "SELECT count(*) FROM evaluation_facts").await?,
        number_on(database, "SELECT CAST(sum(rows) AS BIGINT) FROM evaluation_days").await?,
    );
    assert_eq!(rows, in_days);
    // Without rows a day has no columns.
    let before = TicketId::min_at(now().plus_millis(100_000));
    for organization in [model.organization_id, model.other] {
        model.exports.remove_rows_older_than(organization, before, 500).await?;
    }
    refresh(&model.evaluations, 1_000).await?;
    assert_eq!(number_on(&model.test_database.database, "SELECT count(*) FROM evaluation_days").await?, 0);
    Ok(())
}

/// Writers, deletions, retention, readers and the task that writes columns run at the same time. Each summary read meanwhile
/// must be consistent; afterwards no row may be missing or counted twice.
async fn columns_stay_exact_beside_concurrent_changes(mut model: ReadModel) -> Result<()> {
    for round in 0..5 {
        model.record(20).await?;
        let batches: Vec<Vec<EvaluationRow>> = (0..12)
            .map(|_| {
                let events: Vec<_> = (0..6).map(|_| model.random.event(model.organization_id)).collect();
                events.iter().for_each(|event| model.expect(event));
                events.iter().map(|event| EvaluationRow::of(new_id(), event)).collect()
            })
            .collect();
        // Tickets of earlier rounds and of this one: some are deleted before they arrive.
        let (oldest, deleted) = (model.rows.keys().nth(3).copied(), model.some_tickets(8));
        let oldest = oldest.unwrap_or(TicketId::min_at(now()));
        let has_ended = AtomicBool::new(false);
        let writing = async {
            let writes = batches.into_iter().map(|batch| model.exports.record_rows(Arc::new(batch), now()));
            futures_util::future::try_join_all(writes).await?;
            anyhow::Ok(())
        };
        let deleting = async {
            for ticket_id in &deleted {
                let row = deletion(model.organization_id, *ticket_id);
                model.exports.delete_rows(vec![row], now()).await?;
            }
            anyhow::Ok(())
        };
        let expiring = async {
            while model.exports.remove_rows_older_than(model.organization_id, oldest, 1).await? > 0 {}
            anyhow::Ok(())
        };
        let refreshing = (0..2).map(|_| refresh_until(&model.evaluations, &has_ended));
        let changing = async {
            tokio::try_join!(writing, deleting, expiring)?;
            has_ended.store(true, Ordering::Relaxed);
            anyhow::Ok(())
        };
        let reading = model.read_until(&has_ended);
        tokio::try_join!(changing, futures_util::future::try_join_all(refreshing), reading)?;
        model.rows.retain(|id, _| *id >= oldest && !deleted.contains(id));
        let summary = model.summary(SummaryQuery::default()).await?;
        assert_eq!(summary.totals.count, model.rows.len() as u64, "round {round}");
        model.check().await?;
    }
    Ok(())
}

async fn refresh_until(store: &EvaluationStore, has_ended: &AtomicBool) -> Result<()> {
    while !has_ended.load(Ordering::Relaxed) {
        refresh(store, 1).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

impl ReadModel {
    fn some_tickets(&mut self, count: u64) -> Vec<TicketId> {
        let known: Vec<TicketId> = self.rows.keys().copied().collect();
        (0..count).map(|_| self.random.choose(&known)).collect()
    }

    /// Reads summaries while rows change, at least one: their parts add up, and no ticket counts twice.
    async fn read_until(&self, has_ended: &AtomicBool) -> Result<()> {
        loop {
            let by = vec![Dimension::Status, Dimension::Source];
            let query = SummaryQuery { by, step: Some(Step::Day), ..SummaryQuery::default() };
            let Summary { totals, series, breakdown, .. } = self.summary(query).await?;
            let groups = breakdown.map(|breakdown| breakdown.groups).unwrap_or_default();
            let in_groups: u64 = groups.iter().map(|group| group.measures.count).sum();
            let within: u64 =
                groups.iter().flat_map(|group| &group.groups).map(|group| group.measures.count).sum();
            let in_series: u64 = series.iter().flatten().map(|point| point.measures.count).sum();
            assert_eq!([in_groups, within, in_series], [totals.count; 3]);
            assert!(totals.count <= self.rows.len() as u64, "{} of {}", totals.count, self.rows.len());
            if has_ended.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
}

on_both_databases!(ReadModel {
    lists_summaries_and_files_of_any_filter_agree,
    refreshed_days_are_not_stale,
    columns_stay_exact_beside_concurrent_changes,
});

/// `make test-read-model`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn ten_thousand_filters_agree_on_postgres() -> Result<()> {
    check_filters(&mut ReadModel::on_postgres().await?, 10_000).await
}
