//! Columns of days: their cost, their limits, and days whose columns cannot be written.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use assay_contracts::evaluation::Score;
use assay_contracts::evaluations::{Dimension, EvaluationFilters, Sort, SortKey, SummaryQuery};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_export::domain::ranking::{Rank, ReadDirection};
use assay_export::store::{ListSelection, RankBound};
use assay_platform::db::Database;
use assay_platform::runtime::new_id;
use assay_testkit::{execute_on, number_on, on_both_databases};

use crate::copied_facts::copy_facts;
use crate::random_evaluations::Random;
use crate::read_model::{ReadModel, refresh};
use crate::samples::{STARTED, changed, evaluated};
use crate::test_app::TestApp;
use crate::test_database::record;

/// A summary of very many rows without columns needs little memory.
async fn rows_are_read_without_holding_them(model: ReadModel) -> Result<()> {
    let event = evaluated(model.organization_id, STARTED);
    record(&model.exports, std::slice::from_ref(&event)).await?;
    let database = &model.test_database.database;
    if matches!(database, Database::Postgres(_)) {
        // Updating this index would take most of the time of the copies.
        execute_on(database, "DROP INDEX evaluation_facts_terms").await?;
    }
    copy_facts(database, event.ticket.id, 100_000).await?;
    // Resets the peak of the memory in use.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = memory("VmRSS")?;
    let days = model.evaluations.rows_by_day(model.organization_id, EvaluationFilters::default()).await?;
    let used = memory("VmHWM")?.saturating_sub(before);
    ensure!(days.len() == 1 && days[0].1.len() == 100_001, "unexpected number of rows");
    ensure!(used < 20 << 20, "{} MB for 100,000 rows, whose columns have 3", used >> 20);
    Ok(())
}

/// A memory figure of this process, in bytes.
fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such figure")?;
    let kilobytes: String = line.chars().filter(char::is_ascii_digit).collect();
    Ok(kilobytes.parse::<u64>()? * 1_024)
}

/// Clients choose the sources: a day may have more of them than its columns can hold.
async fn day_with_very_many_sources_stays_exact(model: ReadModel) -> Result<()> {
    let mut random = Random::new(29);
    let events: Vec<ConversationEvaluated> = (0..1_000)
        .map(|index| {
            let mut event = random.event(model.organization_id);
            event.ticket.started_at = STARTED;
            event.ticket.source = format!("{:01000}", index / 2);
            event
        })
        .collect();
    for batch in events.chunks(100) {
        record(&model.exports, batch).await?;
    }
    refresh(&model.evaluations, 10).await?;
    let database = &model.test_database.database;
    ensure!(number_on(database, "SELECT count(*) FROM stale_days").await? == 0, "the day has columns");
    let bytes =
        number_on(database, "SELECT CAST(max(length(packed)) AS BIGINT) FROM evaluation_days").await?;
    ensure!(bytes < 500_000, "{bytes} bytes for a thousand rows");
    let summary = |filters: EvaluationFilters, by: &[Dimension]| {
        model.summary(SummaryQuery { filters, by: by.to_vec(), step: None, compare: None })
    };
    let all = summary(EvaluationFilters::default(), &[Dimension::Language]).await?;
    let groups = all.breakdown.unwrap();
    let in_groups: u64 = groups.groups.iter().map(|group| group.measures.count).sum();
    assert_eq!((all.totals.count, in_groups, groups.truncated), (1_000, 1_000, false));
    // Values that the columns lack are left out, not counted wrongly.
    for by in [Dimension::Source, Dimension::Agent] {
        let breakdown = summary(EvaluationFilters::default(), &[by]).await?.breakdown.unwrap();
        assert_eq!((breakdown.groups.len(), breakdown.truncated), (0, true));
    }
    for index in [0, 250, 499] {
        let source = vec![format!("{index:01000}")];
        let filters = EvaluationFilters { source, ..EvaluationFilters::default() };
        let listed = model.list(&filters, Sort::default()).await?.len();
        let found = summary(filters, &[Dimension::Source]).await?;
        assert_eq!((found.totals.count, listed), (2, 2), "source {index}");
        assert_eq!(found.breakdown.unwrap().groups[0].measures.count, 2);
    }
    let agents = EvaluationFilters::parse([("agent", "none")]).unwrap();
    let listed = model.list(&agents, Sort::default()).await?.len() as u64;
    assert_eq!(summary(agents, &[]).await?.totals.count, listed);
    Ok(())
}

/// Rows that are evaluated again after the ranks were read do not displace others from the page.
async fn page_by_rank_has_no_rows_after_its_last_rank(model: ReadModel) -> Result<()> {
    let scored = |tenths: i64, date: Timestamp| {
        changed(evaluated(model.organization_id, date), |evaluation| {
            evaluation.axis.as_mut().unwrap().score = Score::from_tenths(tenths).unwrap();
        })
    };
    let older = STARTED.plus_millis(-1);
    let events = [(10, STARTED), (20, older), (30, STARTED), (30, older), (40, STARTED)];
    record(&model.exports, &events.map(|(tenths, date)| scored(tenths, date))).await?;
    let [ascending, descending] = [false, true].map(|descending| Sort { key: SortKey::Axis, descending });
    let listed = async |sort: Sort, value: u8, start_times: &[Timestamp]| {
        let bound = RankBound {
            start_times: start_times.iter().map(|moment| moment.as_millis()).collect(),
            last: Rank::new(sort, Some(value), STARTED.as_millis()),
        };
        let selection = ListSelection {
            organization_id: model.organization_id,
            filters: EvaluationFilters::default(),
            sort,
            position: None,
            direction: ReadDirection::Forwards,
            rank_bound: Some(Arc::new(bound)),
        };
        let rows = model.evaluations.list(selection, 10).await?;
        let axis = rows.iter().map(|row| row.evaluation.scores.map_or(0, |scores| scores.axis.tenths()));
        anyhow::Ok(axis.collect::<Vec<_>>())
    };
    assert_eq!(listed(ascending, 30, &[STARTED]).await?, [10, 30]);
    assert_eq!(
        listed(ascending, 30, &[STARTED, older]).await?,
        [10, 20, 30],
        "the older row with the value 30 comes after the last rank"
    );
    assert_eq!(listed(descending, 30, &[STARTED, older]).await?, [40, 30]);
    assert_eq!(listed(descending, 10, &[older]).await?, [30, 20]);
    Ok(())
}

on_both_databases! { ReadModel {
    rows_are_read_without_holding_them,
    day_with_very_many_sources_stays_exact,
    page_by_rank_has_no_rows_after_its_last_rank,
} }

/// The day that has been stale for longest cannot be read.
async fn damaged_day_does_not_block_the_refresh_of_others(app: TestApp) -> Result<()> {
    let organization = new_id();
    let [damaged, sound] =
        [STARTED.plus_millis(-DAY_MILLIS), STARTED].map(|date| evaluated(organization, date));
    record(&app.exports, &[damaged.clone(), sound]).await?;
    let database = &app.test_database.database;
    let stale_days = "SELECT count(*) FROM stale_days";
    app.test_database.number_becomes("the columns of both days", stale_days, 0).await?;
    let ticket = damaged.ticket.id;
    execute_on(
        database,
        format!("UPDATE evaluation_facts SET agents = 'no JSON' WHERE ticket_id = '{ticket}'"),
    )
    .await?;
    // `marked_at` is the number of the day: the damaged day, the older one, comes first.
    execute_on(database, "INSERT INTO stale_days SELECT organization_id, day, day FROM evaluation_days")
        .await?;
    execute_on(database, "UPDATE evaluation_days SET refreshed_at = 0").await?;
    app.test_database.number_becomes("the columns of the sound day", stale_days, 1).await?;
    let left = number_on(database, "SELECT day FROM stale_days").await?;
    assert_eq!(left, damaged.ticket.started_at.as_millis() / DAY_MILLIS);
    Ok(())
}

mod running {
    use super::*;

    on_both_databases! { TestApp {
        damaged_day_does_not_block_the_refresh_of_others,
    } }
}
