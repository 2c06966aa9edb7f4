//! A read model, and the rows that it is expected to have.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use assay_contracts::evaluations::{EvaluationFilters, EvaluationItem, Sort, Summary, SummaryQuery};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::ExportKind;
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_export::domain::day::day_of;
use assay_export::domain::evaluation_facts::EvaluationFacts;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::domain::matcher::needs_rows;
use assay_export::domain::ranking::{ReadDirection, rank};
use assay_export::domain::summary::{lack_texts, summarize};
use assay_export::store::{
    DayCache, EvaluationStore, ExportStore, FileSelection, ListPosition, ListSelection, Notifications,
    RankBound, WorkStore, evaluation_store, export_store, work_store,
};
use assay_platform::runtime::{new_id, now};

use crate::list_order::position_of;
use crate::random_evaluations::Random;
use crate::samples::deletion;
use crate::test_database::{TestDatabase, read_lines};

/// Maximum number of rows of the organization: with more, the oldest expire. Only the longest test reaches it.
const MAX_ROWS: usize = 600;

pub struct ReadModel {
    /// Owns the database.
    pub test_database: TestDatabase,
    pub exports: ExportStore,
    pub work: WorkStore,
    pub evaluations: EvaluationStore,
    pub days: Arc<DayCache>,
    pub organization_id: OrganizationId,
    /// Another organization, whose rows must not be found.
    pub other: OrganizationId,
    /// The expected rows.
    pub rows: BTreeMap<TicketId, EvaluationItem>,
    pub random: Random,
}

impl ReadModel {
    pub async fn on_sqlite() -> Result<Self> {
        Ok(Self::at(TestDatabase::sqlite().await?))
    }

    pub async fn on_postgres() -> Result<Self> {
        Ok(Self::at(TestDatabase::postgres().await?))
    }

    pub fn at(test_database: TestDatabase) -> Self {
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
            random: Random::new(7),
            test_database,
        }
    }

    /// Records a batch with evaluations of both organizations, new ones and some that replace others.
    pub async fn record(&mut self, count: u64) -> Result<()> {
        let mut batch = Vec::new();
        for _ in 0..count {
            let organization = self.random.choose(&[self.organization_id, self.organization_id, self.other]);
            let mut event = self.random.event(organization);
            let known: Vec<TicketId> = self.rows.keys().copied().collect();
            if organization == self.organization_id && !known.is_empty() && self.random.below(6) == 0 {
                // Evaluated again, and its conversation may begin on another day.
                event.ticket.id = self.random.choose(&known);
                event.evaluated_at =
                    now().plus_millis(i64::try_from(self.random.below(1 << 24)).unwrap_or_default());
            }
            self.expect(&event);
            batch.push(EvaluationRow::of(new_id(), &event));
        }
        Ok(self.exports.record_rows(Arc::new(batch), now()).await?)
    }

    /// Updates the expected rows.
    pub fn expect(&mut self, event: &ConversationEvaluated) {
        if event.organization_id != self.organization_id {
            return;
        }
        let facts = EvaluationFacts::of(event);
        let new = (facts.evaluation.evaluated_at, facts.evaluation.evaluation_id);
        let known = self.rows.get(&facts.ticket.id);
        if known.is_none_or(|known| (known.evaluation.evaluated_at, known.evaluation.id) < new) {
            self.rows.insert(facts.ticket.id, facts.into_item());
        }
    }

    pub async fn delete_some(&mut self) -> Result<()> {
        let known: Vec<TicketId> = self.rows.keys().copied().collect();
        let mut deleted = Vec::new();
        for _ in 0..3 {
            let ticket_id = self.random.choose(&known);
            self.rows.remove(&ticket_id);
            deleted.push(deletion(self.organization_id, ticket_id));
        }
        Ok(self.exports.delete_rows(deleted, now()).await?)
    }

    /// Removes the oldest rows by import, as retention does.
    pub async fn expire_some(&mut self) -> Result<()> {
        let Some(before) = self.rows.keys().nth(4).copied() else { return Ok(()) };
        self.rows.retain(|id, _| *id >= before);
        self.exports.remove_rows_older_than(self.organization_id, before, 500).await?;
        Ok(())
    }

    /// Makes one random change.
    pub async fn step(&mut self) -> Result<()> {
        // More rows make each check slower, and do not find more errors.
        while self.rows.len() > MAX_ROWS {
            self.expire_some().await?;
        }
        match self.random.below(8) {
            0 if self.rows.len() > 20 => self.delete_some().await,
            1 if self.rows.len() > 60 => self.expire_some().await,
            2 | 3 => refresh(&self.evaluations, 3).await,
            _ => self.record(9).await,
        }
    }

    pub async fn summary(&self, query: SummaryQuery) -> Result<Summary> {
        let filters = query.filters.clone();
        let between = (filters.from.map_or(0, day_of), filters.to.map_or(i64::from(i32::MAX), day_of));
        let mut days =
            self.evaluations.days(self.organization_id, between, None, self.days.clone()).await?.days;
        if needs_rows(&filters) || lack_texts(&days, &filters) {
            days = self.evaluations.rows_by_day(self.organization_id, filters).await?;
        }
        Ok(summarize(&query, &days)?)
    }

    /// The whole list in pages of seven.
    pub async fn list(&self, filters: &EvaluationFilters, sort: Sort) -> Result<Vec<EvaluationItem>> {
        let mut found: Vec<EvaluationItem> = Vec::new();
        loop {
            let last = found.last().map(|last| position_of(last, sort));
            let page = self.page(self.selection(filters, sort, last, ReadDirection::Forwards), 7).await?;
            let is_last = page.len() < 7;
            found.extend(page.into_iter().map(EvaluationFacts::into_item));
            if is_last {
                return Ok(found);
            }
        }
    }

    /// A part of the list, found as the role finds it: by the ranks in columns, if these have all that the filters compare.
    pub async fn page(&self, selection: ListSelection, wanted: u32) -> Result<Vec<EvaluationFacts>> {
        let ListSelection { filters, sort, position, direction, .. } = selection.clone();
        let between = (0, i64::from(i32::MAX));
        let days = self.evaluations.days(self.organization_id, between, None, self.days.clone()).await?.days;
        if needs_rows(&filters) || lack_texts(&days, &filters) {
            return Ok(self.evaluations.list(selection, wanted).await?);
        }
        let position = position.map(|position| position.rank(sort));
        let found = rank(&days, &filters, sort, position, direction, wanted as usize);
        let rank_bound = RankBound::of(&found.ranks).map(Arc::new);
        Ok(self.evaluations.list(ListSelection { rank_bound, ..selection }, wanted).await?)
    }

    pub fn selection(
        &self,
        filters: &EvaluationFilters,
        sort: Sort,
        position: Option<ListPosition>,
        direction: ReadDirection,
    ) -> ListSelection {
        let (organization_id, filters) = (self.organization_id, filters.clone());
        ListSelection { organization_id, filters, sort, position, direction, rank_bound: None }
    }

    /// The ticket ids of a file, in order.
    pub async fn file(&self, filters: &EvaluationFilters) -> Result<Vec<String>> {
        let (organization_id, filters) = (self.organization_id, filters.clone());
        let selection = FileSelection { organization_id, kind: ExportKind::Axis, filters };
        let (count, bytes) = read_lines(&self.work, selection).await?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&bytes[..]);
        let ids: Vec<String> =
            reader.records().map(|record| Ok(record?[0].to_owned())).collect::<Result<_>>()?;
        assert_eq!(count, ids.len() as u64);
        Ok(ids)
    }
}

/// Writes the columns of at most this many stale days.
pub async fn refresh(store: &EvaluationStore, days: u32) -> Result<()> {
    for _ in 0..days {
        // So late that every stale day is due.
        let Some(stale_day) = store.next_stale_day(now().plus_millis(1_000_000), Vec::new()).await? else {
            break;
        };
        store.refresh_day(stale_day, now()).await?;
    }
    Ok(())
}
