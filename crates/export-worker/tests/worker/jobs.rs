//! Jobs that succeed: waits for evaluations, files, and wake-ups of workers.

use std::sync::LazyLock;

use anyhow::{Context as _, Result};
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::{JobWithoutTarget, SkippedSequences};
use assay_export_worker::Config;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, number_on, on_both_databases};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::samples::{STARTED, evaluated};
use crate::test_app::{TestApp, file_of, stop};

/// The metrics of the test's process.
static METRICS: LazyLock<Option<PrometheusHandle>> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().ok());

fn numbered(app: &TestApp, sequence: i64) -> ConversationEvaluated {
    ConversationEvaluated { sequence, ..evaluated(app.organization_id, STARTED) }
}

async fn file_contains_the_selected_rows_in_order(app: TestApp) -> Result<()> {
    let at = |second: i64| STARTED.plus_millis(second * 1_000);
    let mut events: Vec<_> = [3, 1, 2, 0].map(|second| evaluated(app.organization_id, at(second))).to_vec();
    app.record(&events).await?;
    events.sort_by_key(|event| event.ticket.started_at);
    let filters = ExportFilters { from: Some(at(1)), to: Some(at(3)), ..ExportFilters::default() };
    let audit = app.create(ExportKind::ResolutionAudit, filters).await?;
    let axis = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker()?;
    assert_eq!(app.content(audit).await?, file_of(ExportKind::ResolutionAudit, &events[1..3]));
    assert_eq!(app.content(axis).await?, file_of(ExportKind::Axis, &events));
    assert_eq!((app.column(audit, "file_rows").await?, app.column(axis, "file_rows").await?), (2, 4));
    let file = app.file(axis).await?;
    assert_eq!(file.object_key, app.key(axis, 1));
    let kept = file.expires_at.millis_since(now());
    assert!((29 * DAY_MILLIS..=30 * DAY_MILLIS).contains(&kept), "{kept}");
    Ok(())
}

async fn job_waits_for_its_target_sequence(app: TestApp) -> Result<()> {
    let events: Vec<_> = (1..=3).map(|sequence| numbered(&app, sequence)).collect();
    app.record(&events[..1]).await?;
    let id = app.create_with_target(3).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(2));
    let _worker = app.worker()?;
    app.status_becomes(id, ExportStatus::Running).await?;
    app.record(&events[1..2]).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(1));
    app.record(&events[2..]).await?;
    app.file(id).await?;
    assert_eq!(app.column(id, "file_rows").await?, 3);
    Ok(())
}

async fn duplicate_event_in_a_batch_counts_once(app: TestApp) -> Result<()> {
    let event = evaluated(app.organization_id, STARTED);
    let row = EvaluationRow::of(new_id(), &event);
    app.exports.record_rows(vec![row.clone(), row].into(), now()).await?;
    let id = app.create_with_target(2).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(1));
    Ok(())
}

async fn out_of_order_sequence_does_not_fill_a_gap(app: TestApp) -> Result<()> {
    let id = app.create_with_target(2).await?;
    app.record(&[numbered(&app, 4), numbered(&app, 1)]).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(1));
    app.record(&[numbered(&app, 3), numbered(&app, 5)]).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(1));
    app.record(&[numbered(&app, 2)]).await?;
    assert_eq!(app.work.evaluation_lag(id).await?, Some(0));
    let later = app.create_with_target(6).await?;
    assert_eq!(app.work.evaluation_lag(later).await?, Some(1));
    Ok(())
}

async fn missing_sequences_are_skipped_after_the_timeout(app: TestApp) -> Result<()> {
    app.record(&[numbered(&app, 3)]).await?;
    let id = app.create_with_target(3).await?;
    assert!(app.exports.skip_missing_sequences(now().plus_millis(-60_000)).await?.is_empty());
    assert_eq!(app.work.evaluation_lag(id).await?, Some(3));
    let skipped = app.exports.skip_missing_sequences(now().plus_millis(60_000)).await?;
    assert_eq!(skipped, [SkippedSequences { organization_id: app.organization_id, sequences: (1, 2) }]);
    assert_eq!(app.work.evaluation_lag(id).await?, Some(0));
    let unreachable = app.create_with_target(5).await?;
    let skipped = app.exports.skip_missing_sequences(now().plus_millis(60_000)).await?;
    assert_eq!(skipped, [SkippedSequences { organization_id: app.organization_id, sequences: (4, 5) }]);
    assert_eq!(app.work.evaluation_lag(unreachable).await?, Some(0));
    Ok(())
}

async fn waiting_jobs_of_one_organization_leave_slots_to_others(mut app: TestApp) -> Result<()> {
    let greedy = app.organization_id;
    for _ in 0..30 {
        app.create_with_target(100).await?;
    }
    let _worker = app.worker()?;
    let running =
        format!("SELECT count(*) FROM exports WHERE status = 'running' AND organization_id = '{greedy}'");
    // Half of the two slots of jobs that write and the 16 additional ones.
    eventually("nine running jobs", || async {
        Ok(number_on(&app.test_database.database, &running).await? == 9)
    })
    .await?;
    app.organization_id = new_id();
    for _ in 0..3 {
        let id = app.create_with_target(0).await?;
        app.file(id).await?;
    }
    assert_eq!(number_on(&app.test_database.database, &running).await?, 9);
    Ok(())
}

async fn waiting_jobs_do_not_block_others(app: TestApp) -> Result<()> {
    app.record(&[evaluated(app.organization_id, STARTED)]).await?;
    for _ in 0..4 {
        app.create_with_target(100).await?;
    }
    let _worker = app.worker()?;
    let id = app.create_with_target(1).await?;
    app.file(id).await?;
    Ok(())
}

async fn job_waits_until_its_target_sequence_is_set(app: TestApp) -> Result<()> {
    app.record(&[evaluated(app.organization_id, STARTED)]).await?;
    let id = app.create_without_target().await?;
    assert_eq!(app.work.evaluation_lag(id).await?, None);
    let _worker = app.worker()?;
    app.status_becomes(id, ExportStatus::Running).await?;
    let without_target = app.exports.jobs_without_target(10).await?;
    assert_eq!(without_target, [JobWithoutTarget { id, organization_id: app.organization_id }]);
    app.exports.set_target_sequence(id, 1).await?;
    app.file(id).await?;
    assert!(app.exports.jobs_without_target(10).await?.is_empty());
    Ok(())
}

async fn job_stops_waiting_after_the_timeout(app: TestApp) -> Result<()> {
    let id = app.create_with_target(1).await?;
    let _worker = app.worker_with(|config| config.evaluations_wait_milliseconds = 100)?;
    app.file(id).await?;
    assert_eq!(app.column(id, "file_rows").await?, 0);
    Ok(())
}

async fn export_says_how_many_evaluations_are_missing(app: TestApp) -> Result<()> {
    let metrics = METRICS.as_ref().context("another recorder is installed")?;
    let counted = |reason| incomplete_exports(&metrics.render(), reason);
    let before = (counted("missing"), counted("unknown"));
    app.record(&[1, 3, 4, 7].map(|sequence| numbered(&app, sequence))).await?;
    let _worker = app.worker_with(|config| config.evaluations_wait_milliseconds = 100)?;
    for (target, missing) in [(1, 0), (2, 1), (4, 1), (6, 3), (9, 5)] {
        let id = app.create_with_target(target).await?;
        assert_eq!(app.file(id).await?.missing_evaluations, Some(missing), "{target}");
    }
    let id = app.create_without_target().await?;
    assert_eq!(app.file(id).await?.missing_evaluations, None);
    // Counted after the file is complete; other tests of the process may count, too. The file of the first job lacks nothing.
    eventually("incomplete exports to be counted", async || {
        Ok(counted("missing") >= before.0 + 4 && counted("unknown") > before.1)
    })
    .await
}

/// The value of `assay_export_incomplete_total` for a reason.
fn incomplete_exports(metrics: &str, reason: &str) -> u64 {
    let series = format!("assay_export_incomplete_total{{reason=\"{reason}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).unwrap_or(0)
}

async fn skipped_evaluations_are_missing_until_they_arrive(app: TestApp) -> Result<()> {
    app.record(&[1, 5, 9].map(|sequence| numbered(&app, sequence))).await?;
    let id = app.create_with_target(12).await?;
    let missing = async || anyhow::Ok(app.work.missing_evaluations(id).await?);
    // Missing are 2 to 4, 6 to 8 and 10 to 12.
    assert_eq!(missing().await?, Some(9));
    assert_eq!(app.exports.skip_missing_sequences(now().plus_millis(60_000)).await?.len(), 3);
    assert_eq!((app.work.evaluation_lag(id).await?, missing().await?), (Some(0), Some(9)));
    // In the middle and at the ends of a range, its last one, and one (5) that has already arrived.
    for (arrived, rest) in [(3, 8), (10, 7), (2, 6), (4, 5), (5, 5), (12, 4), (11, 3)] {
        app.record(&[numbered(&app, arrived)]).await?;
        assert_eq!(missing().await?, Some(rest), "after {arrived}");
    }
    app.exports.prune_skipped_sequences(Some(new_id()), Timestamp::MAX).await?;
    app.exports.prune_skipped_sequences(Some(app.organization_id), now()).await?;
    assert_eq!(missing().await?, Some(3));
    app.exports.prune_skipped_sequences(Some(app.organization_id), now().plus_millis(120_000)).await?;
    assert_eq!(missing().await?, Some(0));
    Ok(())
}

async fn file_without_rows_has_only_a_header(app: TestApp) -> Result<()> {
    let _worker = app.worker()?;
    for &kind in ExportKind::ALL {
        let id = app.create(kind, ExportFilters::default()).await?;
        let content = app.content(id).await?;
        assert_eq!(content, file_of(kind, []));
        let mut reader = csv::Reader::from_reader(content.as_bytes());
        assert_eq!((reader.headers()?.len(), reader.records().count()), (43, 0));
    }
    Ok(())
}

fn without_polling(config: &mut Config) {
    config.poll_interval_milliseconds = 3_600_000;
    config.pending_grace_milliseconds = 3_600_000;
}

async fn event_wakes_a_worker_before_its_next_poll(app: TestApp) -> Result<()> {
    let _worker = app.worker_with(without_polling)?;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let (id, event) = app.create_at(now()).await?;
        jobs.push(id);
        let event = [event];
        // The consumer may not listen yet; a redelivery changes nothing.
        eventually("the consumer", || async { Ok(app.bus.publish(&event).await[0].is_ok()) }).await?;
        app.bus.publish(&event).await[0].clone()?;
    }
    for id in jobs {
        assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
        assert_eq!(app.column(id, "attempts").await?, 1);
    }
    Ok(())
}

async fn event_wakes_a_worker_whose_clock_is_behind(app: TestApp) -> Result<()> {
    let _worker = app.worker_with(without_polling)?;
    let ahead = now().plus_millis(60_000);
    let (id, event) = app.create_at(ahead).await?;
    let event = [event];
    eventually("the consumer", || async { Ok(app.bus.publish(&event).await[0].is_ok()) }).await?;
    assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
    Ok(())
}

async fn concurrent_workers_run_each_job_once(app: TestApp) -> Result<()> {
    let event = evaluated(app.organization_id, STARTED);
    app.record(std::slice::from_ref(&event)).await?;
    let mut jobs = Vec::new();
    for _ in 0..10 {
        jobs.push(app.create(ExportKind::Axis, ExportFilters::default()).await?);
    }
    let _workers = [app.worker()?, app.worker()?];
    for id in jobs {
        assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, [&event]));
        assert_eq!(app.column(id, "attempts").await?, 1);
    }
    Ok(())
}

async fn worker_becomes_ready_and_stops(app: TestApp) -> Result<()> {
    let worker = app.worker()?;
    let readiness = worker.readiness().clone();
    eventually("readiness", || async { Ok(readiness.report().await.ready) }).await?;
    Ok(stop(worker).await?)
}

#[tokio::test]
async fn too_small_database_pool_is_refused() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let worker = app.worker_with(|config| config.database_pool_size = config.parallel_jobs + 1);
    let refusal = worker.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refusal.contains("export_worker.database_pool_size"), "{refusal}");
    Ok(())
}

on_both_databases! { TestApp {
    job_waits_for_its_target_sequence,
    duplicate_event_in_a_batch_counts_once,
    out_of_order_sequence_does_not_fill_a_gap,
    missing_sequences_are_skipped_after_the_timeout,
    waiting_jobs_of_one_organization_leave_slots_to_others,
    waiting_jobs_do_not_block_others,
    export_says_how_many_evaluations_are_missing,
    skipped_evaluations_are_missing_until_they_arrive,
    job_waits_until_its_target_sequence_is_set,
    job_stops_waiting_after_the_timeout,
    file_contains_the_selected_rows_in_order,
    file_without_rows_has_only_a_header,
    event_wakes_a_worker_before_its_next_poll,
    event_wakes_a_worker_whose_clock_is_behind,
    concurrent_workers_run_each_job_once,
    worker_becomes_ready_and_stops,
} }
