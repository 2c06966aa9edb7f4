//! Lists, summaries and files of any filter agree, while evaluations arrive, are deleted and expire.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use assay_contracts::evaluations::{
    Dimension, EvaluationFilters, EvaluationItem, Group, ResultStatus, Sort, SortKey, Step, Summary,
    SummaryQuery,
};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::ExportKind;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_export::domain::day::day_of;
use assay_export::domain::evaluation_facts::EvaluationFacts;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::domain::matcher::needs_rows;
use assay_export::domain::removal::DeletedRow;
use assay_export::domain::summary::summarize;
use assay_export::store::{
    DayCache, EvaluationStore, ExportStore, ListPosition, ListSelection, Notifications, Selection, WorkStore,
    evaluation_store, export_store, line_channel, work_store,
};
use assay_platform::runtime::{new_id, now};
use assay_testkit::on_both_databases;

use crate::list_order::{compare, ids, place};
use crate::random_evaluations::{Random, satisfies};
use crate::test_database::{TestDatabase, number};

/// Filters of one test; `ten_thousand_filters` has as many as its name says.
const FILTERS: u64 = 400;

struct ReadModel {
    /// Keeps the database.
    test_database: TestDatabase,
    exports: Arc<dyn ExportStore>,
    work: Arc<dyn WorkStore>,
    evaluations: Arc<dyn EvaluationStore>,
    days: Arc<DayCache>,
    organization_id: OrganizationId,
    other: OrganizationId,
    /// What should be there.
    rows: BTreeMap<TicketId, EvaluationItem>,
    random: Random,
}

impl ReadModel {
    async fn on_sqlite() -> Result<Self> {
        Ok(Self::at(TestDatabase::sqlite().await?))
    }

    async fn on_postgres() -> Result<Self> {
        Ok(Self::at(TestDatabase::postgres().await?))
    }

    fn at(test_database: TestDatabase) -> Self {
        let database = &test_database.database;
        Self {
            exports: export_store(database),
            work: work_store(database, Notifications::Off),
            evaluations: evaluation_store(database),
            // Room for a few days only, so that others are read again.
            days: Arc::new(DayCache::new(20_000)),
            organization_id: new_id(),
            other: new_id(),
            rows: BTreeMap::new(),
            random: Random(7),
            test_database,
        }
    }

    /// Records a batch with evaluations of both organizations, new ones and some that replace others.
    async fn record(&mut self, count: u64) -> Result<()> {
        let mut batch = Vec::new();
        for _ in 0..count {
            let organization = self.random.choose(&[self.organization_id, self.organization_id, self.other]);
            let mut event = self.random.event(organization);
            let known: Vec<TicketId> = self.rows.keys().copied().collect();
            if organization == self.organization_id && !known.is_empty() && self.random.below(6) == 0 {
                // Evaluated again, and its conversation may begin on another day.
                event.ticket.id = self.random.choose(&known);
                event.evaluated_at =
                    now().plus_millis(i64::try_from(self.random.0 >> 40).unwrap_or_default());
            }
            self.expect(&event);
            batch.push(EvaluationRow::of(new_id(), &event));
        }
        Ok(self.exports.record_rows(Arc::new(batch), now()).await?)
    }

    fn expect(&mut self, event: &ConversationEvaluated) {
        if event.organization_id != self.organization_id {
            return;
        }
        let facts = EvaluationFacts::of(event);
        let new = (facts.evaluation.evaluated_at, facts.evaluation.evaluation_id);
        let known = self.rows.get(&facts.ticket.ticket_id);
        if known.is_none_or(|known| (known.evaluation.evaluated_at, known.evaluation.id) < new) {
            self.rows.insert(facts.ticket.ticket_id, facts.into_item());
        }
    }

    async fn delete_some(&mut self) -> Result<()> {
        let known: Vec<TicketId> = self.rows.keys().copied().collect();
        let mut deleted = Vec::new();
        for _ in 0..3 {
            let ticket_id = self.random.choose(&known);
            self.rows.remove(&ticket_id);
            let organization_id = self.organization_id;
            deleted.push(DeletedRow { event_id: new_id(), organization_id, ticket_id, deleted_at: now() });
        }
        Ok(self.exports.delete_rows(deleted, now()).await?)
    }

    /// Removes the oldest rows by import, as retention does.
    async fn expire_some(&mut self) -> Result<()> {
        let Some(before) = self.rows.keys().nth(4).copied() else { return Ok(()) };
        self.rows.retain(|id, _| *id >= before);
        self.exports.remove_rows_older_than(self.organization_id, before, 500).await?;
        Ok(())
    }

    async fn step(&mut self) -> Result<()> {
        match self.random.below(8) {
            0 if self.rows.len() > 20 => self.delete_some().await,
            1 if self.rows.len() > 60 => self.expire_some().await,
            2 | 3 => self.refresh_some(3).await,
            _ => self.record(9).await,
        }
    }

    async fn refresh_some(&self, days: u32) -> Result<()> {
        for _ in 0..days {
            // As if long ago: every marked day is due.
            self.evaluations.refresh_day(now().plus_millis(1_000_000), now()).await?;
        }
        Ok(())
    }

    async fn summary(&self, query: SummaryQuery) -> Result<Summary> {
        let filters = query.filters.clone();
        let days = if needs_rows(&filters) {
            self.evaluations.selected_days(self.organization_id, filters).await?
        } else {
            let between = (filters.from.map_or(0, day_of), filters.to.map_or(i64::from(i32::MAX), day_of));
            self.evaluations.days(self.organization_id, between, self.days.clone()).await?
        };
        Ok(summarize(&query, &days)?)
    }

    /// The whole list in pages of seven.
    async fn list(&self, filters: &EvaluationFilters, sort: Sort) -> Result<Vec<EvaluationItem>> {
        let mut found: Vec<EvaluationItem> = Vec::new();
        loop {
            let after = found.last().map(|last| place(last, sort));
            let selection = self.selection(filters, sort, after, false);
            let page = self.evaluations.list(selection, 7).await?;
            let is_last = page.len() < 7;
            found.extend(page.into_iter().map(EvaluationFacts::into_item));
            if is_last {
                return Ok(found);
            }
        }
    }

    fn selection(
        &self,
        filters: &EvaluationFilters,
        sort: Sort,
        after: Option<ListPosition>,
        backwards: bool,
    ) -> ListSelection {
        let (organization_id, filters) = (self.organization_id, filters.clone());
        ListSelection { organization_id, filters, sort, after, backwards, values: None }
    }

    /// The ticket ids of a file, in order.
    async fn file(&self, filters: &EvaluationFilters) -> Result<Vec<String>> {
        let (sink, mut lines) = line_channel();
        let (organization_id, filters) = (self.organization_id, filters.clone());
        let selection = Selection { organization_id, kind: ExportKind::Axis, filters };
        let receiving = async {
            let mut bytes = Vec::new();
            while let Some(chunk) = lines.recv().await {
                bytes.extend(chunk);
            }
            bytes
        };
        let (count, bytes) = tokio::join!(self.work.copy_lines(selection, sink), receiving);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&bytes[..]);
        let ids: Vec<String> =
            reader.records().map(|record| Ok(record?[0].to_owned())).collect::<Result<_>>()?;
        assert_eq!(count?, ids.len() as u64);
        Ok(ids)
    }

    /// Compares everything that is said about one filter.
    async fn check(&mut self) -> Result<()> {
        let filters = self.random.filters();
        let (key, descending) = (self.random.choose(SortKey::ALL), self.random.below(2) == 0);
        let sort = Sort { key, descending };
        let case = format!("{} sorted by {sort}", filters.to_query());
        let mut expected: Vec<EvaluationItem> =
            self.rows.values().filter(|row| satisfies(row, &filters)).cloned().collect();
        expected.sort_by(|one, other| compare(one, other, sort));
        let listed = self.list(&filters, sort).await?;
        assert_eq!(ids(&listed), ids(&expected), "{case}");
        assert_eq!(listed, expected, "{case}");
        let by: Vec<Dimension> =
            (0..self.random.below(3)).map(|_| self.random.choose(Dimension::ALL)).collect();
        let step = self.random.choose(&[None, Some(Step::Day), Some(Step::Week)]);
        let by = if by.len() == 2 && by[0] == by[1] { vec![by[0]] } else { by };
        let summary =
            self.summary(SummaryQuery { filters: filters.clone(), by, step, compare: None }).await?;
        self.check_summary(&summary, &expected, &case);
        if let Some(breakdown) = &summary.breakdown {
            self.check_groups(&breakdown.by, &breakdown.groups, &filters, &case);
        }
        let mut in_file: Vec<&EvaluationItem> = expected.iter().collect();
        in_file.sort_by_key(|row| (row.ticket.started_at, row.ticket.id));
        let in_file: Vec<String> = in_file.iter().map(|row| row.ticket.id.to_string()).collect();
        assert_eq!(self.file(&filters).await?, in_file, "{case}");
        self.check_neighbours(&filters, sort, &expected, &case).await
    }

    fn check_summary(&self, summary: &Summary, rows: &[EvaluationItem], case: &str) {
        let totals = &summary.totals;
        let count = |is: &dyn Fn(&EvaluationItem) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
        assert_eq!(totals.count, rows.len() as u64, "{case}");
        assert_eq!(totals.scored, count(&|row| row.evaluation.status == ResultStatus::Scored), "{case}");
        assert_eq!(totals.failed, count(&|row| row.evaluation.status == ResultStatus::Failed), "{case}");
        let charge = |name| count(&|row| row.evaluation.charge.is_some_and(|charge| charge.as_str() == name));
        assert_eq!(totals.charges.disputed, charge("disputed"), "{case}");
        assert_eq!(totals.charges.review, charge("review"), "{case}");
        let band =
            |name| count(&|row| row.evaluation.scores.is_some_and(|scores| scores.band.as_str() == name));
        assert_eq!(totals.bands.excellent, band("excellent"), "{case}");
        assert_eq!(totals.bands.poor, band("poor"), "{case}");
        let scores: Vec<_> = rows.iter().filter_map(|row| row.evaluation.scores).collect();
        assert_eq!(totals.means.is_some(), !scores.is_empty(), "{case}");
        if let Some(means) = totals.means {
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            let axis = mean(scores.iter().map(|scores| scores.axis.value()).collect());
            let confidence = mean(scores.iter().map(|scores| scores.confidence.value()).collect());
            assert!((means.axis - axis).abs() < 0.0051, "{case}: {} {axis}", means.axis);
            assert!((means.confidence - confidence).abs() < 0.0051, "{case}");
        }
        for step in &summary.distributions.axis {
            let in_step = scores.iter().filter(|scores| (step.min..=step.max).contains(&scores.axis)).count();
            assert_eq!(step.count, in_step as u64, "{case}: {step:?}");
        }
        for counted in &summary.charge_reasons {
            let found = count(&|row| row.evaluation.charge_reasons.contains(&counted.reason));
            assert_eq!(counted.count, found, "{case}: {counted:?}");
        }
        for point in summary.series.iter().flatten() {
            let period = point.period;
            let found =
                count(&|row| row.ticket.started_at >= period.from && row.ticket.started_at < period.to);
            assert_eq!(point.measures.count, found, "{case}: {period:?}");
        }
        if let Some(series) = &summary.series {
            let sum: u64 = series.iter().map(|point| point.measures.count).sum();
            assert_eq!(sum, totals.count, "{case}: the series has every row");
        }
    }

    /// A group counts the rows of the filter that its value stands for.
    fn check_groups(&self, by: &[Dimension], groups: &[Group], filters: &EvaluationFilters, case: &str) {
        for group in groups {
            let Some(value) = &group.value else { continue };
            let pairs = [(by[0].as_str(), value.clone())];
            let Ok(narrow) = EvaluationFilters::parse(pairs) else {
                panic!("{case}: {group:?} is no filter")
            };
            let rows = self.rows.values().filter(|row| satisfies(row, filters) && satisfies(row, &narrow));
            assert_eq!(group.measures.count, rows.count() as u64, "{case}: {by:?} {value}");
            for inner in &group.groups {
                let Some(value) = &inner.value else { continue };
                let inner_filter = EvaluationFilters::parse([(by[1].as_str(), value.clone())]).unwrap();
                let all = [filters, &narrow, &inner_filter];
                let rows = self.rows.values().filter(|row| all.iter().all(|filters| satisfies(row, filters)));
                assert_eq!(inner.measures.count, rows.count() as u64, "{case}: {by:?} {value}");
            }
        }
    }

    /// From any row of the list, one step to each side, and the number before it.
    async fn check_neighbours(
        &mut self,
        filters: &EvaluationFilters,
        sort: Sort,
        list: &[EvaluationItem],
        case: &str,
    ) -> Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.random.below(list.len() as u64))?;
        let place = Some(place(&list[at], sort));
        let next = self.evaluations.list(self.selection(filters, sort, place, false), 1).await?;
        let before = self.selection(filters, sort, place, true);
        let previous = self.evaluations.list(before.clone(), 1).await?;
        let id = |row: Option<&EvaluationItem>| row.map(|row| row.ticket.id);
        assert_eq!(next.first().map(|facts| facts.ticket.ticket_id), id(list.get(at + 1)), "{case}");
        let expected = at.checked_sub(1).and_then(|at| list.get(at));
        assert_eq!(previous.first().map(|facts| facts.ticket.ticket_id), id(expected), "{case}");
        assert_eq!(self.evaluations.count(before, 1_000_000).await?, at as u64, "{case}");
        let found = self.evaluations.find(self.organization_id, list[at].ticket.id, filters.clone()).await?;
        assert!(found.is_some_and(|(_, selected)| selected), "{case}");
        Ok(())
    }
}

async fn lists_summaries_and_files_of_any_filter_agree(mut model: ReadModel) -> Result<()> {
    check_filters(&mut model, FILTERS).await
}

async fn check_filters(model: &mut ReadModel, count: u64) -> Result<()> {
    for number in 0..count {
        // More changes in the beginning, so that there are rows.
        for _ in 0..if number < 20 { 4 } else { u64::from(number % 4 == 0) } {
            model.step().await?;
        }
        model.check().await?;
    }
    Ok(())
}

async fn days_in_columns_have_no_marks_left(mut model: ReadModel) -> Result<()> {
    model.record(60).await?;
    let database = &model.test_database.database;
    assert!(number(database, "SELECT count(*) FROM stale_days").await? > 0);
    while model.evaluations.refresh_day(now().plus_millis(1_000_000), now()).await? {}
    assert_eq!(number(database, "SELECT count(*) FROM stale_days").await?, 0);
    let (rows, in_days) = (
        number(database, "SELECT count(*) FROM evaluation_facts").await?,
        number(database, "SELECT CAST(sum(rows) AS BIGINT) FROM evaluation_days").await?,
    );
    assert_eq!(rows, in_days);
    // Without rows a day has no columns.
    let before = TicketId::min_at(now().plus_millis(100_000));
    for organization in [model.organization_id, model.other] {
        model.exports.remove_rows_older_than(organization, before, 500).await?;
    }
    while model.evaluations.refresh_day(now().plus_millis(1_000_000), now()).await? {}
    assert_eq!(number(&model.test_database.database, "SELECT count(*) FROM evaluation_days").await?, 0);
    Ok(())
}

/// Writers and the task that makes columns run at once, again and again; then nothing may be missing or counted twice.
async fn columns_stay_exact_beside_concurrent_writers(mut model: ReadModel) -> Result<()> {
    for round in 0..5 {
        let evaluations = model.evaluations.clone();
        let refreshing = (0..2).map(move |_| {
            let store = evaluations.clone();
            async move {
                for _ in 0..30 {
                    store.refresh_day(now().plus_millis(1_000_000), now()).await?;
                }
                anyhow::Ok(())
            }
        });
        let batches: Vec<Vec<EvaluationRow>> = (0..12)
            .map(|_| {
                let events: Vec<_> = (0..6).map(|_| model.random.event(model.organization_id)).collect();
                events.iter().for_each(|event| model.expect(event));
                events.iter().map(|event| EvaluationRow::of(new_id(), event)).collect()
            })
            .collect();
        let exports = model.exports.clone();
        let writing = futures_util::future::try_join_all(batches.into_iter().map(|batch| {
            let exports = exports.clone();
            async move { anyhow::Ok(exports.record_rows(Arc::new(batch), now()).await?) }
        }));
        tokio::try_join!(futures_util::future::try_join_all(refreshing), writing)?;
        let summary = model.summary(SummaryQuery::default()).await?;
        assert_eq!(summary.totals.count, model.rows.len() as u64, "round {round}");
        model.check().await?;
    }
    Ok(())
}

on_both_databases!(ReadModel {
    lists_summaries_and_files_of_any_filter_agree,
    days_in_columns_have_no_marks_left,
    columns_stay_exact_beside_concurrent_writers,
});

/// Some minutes: `cargo nextest run -p assay-export --run-ignored only ten_thousand`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn ten_thousand_filters_agree_on_postgres() -> Result<()> {
    check_filters(&mut ReadModel::on_postgres().await?, 10_000).await
}
