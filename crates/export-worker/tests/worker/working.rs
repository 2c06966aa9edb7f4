//! Jobs that come to a good end.

use anyhow::Result;
use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::store::{GivenUp, ReceivedRow, UncountedJob};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{eventually, on_both_databases};

use crate::samples::{STARTED, evaluated};
use crate::stage::{Stage, file_of, stop};

const DAY: i64 = 24 * 60 * 60 * 1_000;

async fn a_file_holds_the_selected_rows_in_order(stage: Stage) -> Result<()> {
    let at = |second: i64| STARTED.plus_millis(second * 1_000);
    let mut events: Vec<_> = [3, 1, 2, 0].map(|second| evaluated(stage.organization_id, at(second))).to_vec();
    stage.record(&events).await?;
    events.sort_by_key(|event| event.ticket.started_at);
    let filters = ExportFilters { from: Some(at(1)), to: Some(at(3)) };
    let audit = stage.create(ExportKind::ResolutionAudit, filters).await?;
    let axis = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&stage.config()?)?;
    assert_eq!(stage.content(audit).await?, file_of(ExportKind::ResolutionAudit, &events[1..3]));
    assert_eq!(stage.content(axis).await?, file_of(ExportKind::Axis, &events));
    assert_eq!((stage.column(audit, "file_rows").await?, stage.column(axis, "file_rows").await?), (2, 4));
    let file = stage.file(axis).await?;
    assert_eq!(file.object_key, stage.key(axis, 1));
    let kept = file.expires_at.millis_since(now());
    assert!((29 * DAY..=30 * DAY).contains(&kept), "{kept}");
    Ok(())
}

async fn a_job_waits_for_evaluations_that_were_made_before_it_was_created(stage: Stage) -> Result<()> {
    let events: Vec<_> = (0..3).map(|_| evaluated(stage.organization_id, STARTED)).collect();
    stage.record(&events[..1]).await?;
    let id = stage.create_awaiting(3).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(2));
    let _worker = stage.worker(&stage.config()?)?;
    stage.status_becomes(id, ExportStatus::Running).await?;
    stage.record(&events[1..2]).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(1));
    stage.record(&events[2..]).await?;
    stage.file(id).await?;
    assert_eq!(stage.column(id, "file_rows").await?, 3);
    Ok(())
}

async fn an_event_that_comes_twice_in_one_batch_does_not_stand_for_another_one(stage: Stage) -> Result<()> {
    let event = evaluated(stage.organization_id, STARTED);
    let row = ReceivedRow { event_id: new_id(), row: EvaluationRow::of(&event) };
    stage.exports.record_rows(vec![row.clone(), row], now()).await?;
    let id = stage.create_awaiting(2).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(1));
    Ok(())
}

async fn an_evaluation_that_overtakes_another_one_does_not_stand_for_it(stage: Stage) -> Result<()> {
    let numbered = |sequence| {
        let event = evaluated(stage.organization_id, STARTED);
        ConversationEvaluated { sequence: Some(sequence), ..event }
    };
    let id = stage.create_awaiting(2).await?;
    stage.record(&[numbered(4), numbered(1)]).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(1));
    stage.record(&[numbered(3), numbered(5)]).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(1));
    stage.record(&[numbered(2)]).await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(0));
    let later = stage.create_awaiting(6).await?;
    assert_eq!(stage.work.missing_evaluations(later).await?, Some(1));
    Ok(())
}

async fn an_evaluation_that_never_arrives_is_given_up_after_a_while(stage: Stage) -> Result<()> {
    let event = evaluated(stage.organization_id, STARTED);
    stage.record(&[ConversationEvaluated { sequence: Some(3), ..event }]).await?;
    let id = stage.create_awaiting(3).await?;
    assert!(stage.exports.give_up_arrivals(now().plus_millis(-60_000)).await?.is_empty());
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(3));
    let given_up = stage.exports.give_up_arrivals(now().plus_millis(60_000)).await?;
    assert_eq!(given_up, [GivenUp { organization_id: stage.organization_id, numbers: (1, 2) }]);
    assert_eq!(stage.work.missing_evaluations(id).await?, Some(0));
    let in_vain = stage.create_awaiting(5).await?;
    let given_up = stage.exports.give_up_arrivals(now().plus_millis(60_000)).await?;
    assert_eq!(given_up, [GivenUp { organization_id: stage.organization_id, numbers: (4, 5) }]);
    assert_eq!(stage.work.missing_evaluations(in_vain).await?, Some(0));
    Ok(())
}

async fn jobs_that_wait_for_evaluations_do_not_hold_up_others(stage: Stage) -> Result<()> {
    stage.record(&[evaluated(stage.organization_id, STARTED)]).await?;
    for _ in 0..4 {
        stage.create_awaiting(100).await?;
    }
    let _worker = stage.worker(&stage.config()?)?;
    let id = stage.create_awaiting(1).await?;
    stage.file(id).await?;
    Ok(())
}

async fn a_job_waits_until_it_is_known_how_many_evaluations_there_are(stage: Stage) -> Result<()> {
    stage.record(&[evaluated(stage.organization_id, STARTED)]).await?;
    let id = stage.create_uncounted().await?;
    assert_eq!(stage.work.missing_evaluations(id).await?, None);
    let _worker = stage.worker(&stage.config()?)?;
    stage.status_becomes(id, ExportStatus::Running).await?;
    let uncounted = stage.exports.uncounted_jobs(10).await?;
    assert_eq!(uncounted, [UncountedJob { id, organization_id: stage.organization_id }]);
    stage.exports.set_awaited(id, 1).await?;
    stage.file(id).await?;
    assert!(stage.exports.uncounted_jobs(10).await?.is_empty());
    Ok(())
}

async fn a_job_does_not_wait_for_ever(stage: Stage) -> Result<()> {
    let mut config = stage.config()?;
    config.evaluations_wait_milliseconds = 100;
    let id = stage.create_awaiting(1).await?;
    let _worker = stage.worker(&config)?;
    stage.file(id).await?;
    assert_eq!(stage.column(id, "file_rows").await?, 0);
    Ok(())
}

async fn a_file_without_rows_is_its_header(stage: Stage) -> Result<()> {
    let _worker = stage.worker(&stage.config()?)?;
    for kind in ExportKind::ALL {
        let id = stage.create(kind, ExportFilters::default()).await?;
        let content = stage.content(id).await?;
        assert_eq!(content, file_of(kind, []));
        let mut reader = csv::Reader::from_reader(content.as_bytes());
        assert_eq!((reader.headers()?.len(), reader.records().count()), (43, 0));
    }
    Ok(())
}

async fn an_event_wakes_a_worker_that_would_look_for_jobs_much_later(stage: Stage) -> Result<()> {
    let mut config = stage.config()?;
    config.poll_interval_milliseconds = 3_600_000;
    config.pending_grace_milliseconds = 3_600_000;
    let _worker = stage.worker(&config)?;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let (id, event) = stage.create_with_event(ExportKind::Axis, ExportFilters::default()).await?;
        jobs.push(id);
        let event = [event];
        // The consumer may not listen yet; a second delivery of the same event changes nothing.
        eventually("the consumer", || async { Ok(stage.bus.publish(&event).await[0].is_ok()) }).await?;
        stage.bus.publish(&event).await[0].clone()?;
    }
    for id in jobs {
        assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
        assert_eq!(stage.column(id, "attempts").await?, 1);
    }
    Ok(())
}

async fn an_event_is_enough_when_the_clock_of_the_worker_is_behind(stage: Stage) -> Result<()> {
    let mut config = stage.config()?;
    config.poll_interval_milliseconds = 3_600_000;
    config.pending_grace_milliseconds = 3_600_000;
    let _worker = stage.worker(&config)?;
    let ahead = now().plus_millis(60_000);
    let (id, event) = stage.create_at(ahead, ExportKind::Axis, ExportFilters::default()).await?;
    let event = [event];
    eventually("the consumer", || async { Ok(stage.bus.publish(&event).await[0].is_ok()) }).await?;
    assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
    Ok(())
}

async fn several_workers_do_each_job_once(stage: Stage) -> Result<()> {
    let event = evaluated(stage.organization_id, STARTED);
    stage.record(std::slice::from_ref(&event)).await?;
    let mut jobs = Vec::new();
    for _ in 0..10 {
        jobs.push(stage.create(ExportKind::Axis, ExportFilters::default()).await?);
    }
    let _workers = [stage.worker(&stage.config()?)?, stage.worker(&stage.config()?)?];
    for id in jobs {
        assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, [&event]));
        assert_eq!(stage.column(id, "attempts").await?, 1);
    }
    Ok(())
}

async fn a_worker_says_that_it_is_ready_and_stops_when_asked(stage: Stage) -> Result<()> {
    let worker = stage.worker(&stage.config()?)?;
    let readiness = worker.readiness().clone();
    eventually("readiness", || async { Ok(readiness.report().await.ready) }).await?;
    Ok(stop(worker).await?)
}

#[tokio::test]
async fn a_pool_that_jobs_would_use_up_is_refused() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let mut config = stage.config()?;
    config.database_pool_size = config.parallel_jobs + 1;
    let refusal = stage.worker(&config).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refusal.contains("export_worker.database_pool_size"), "{refusal}");
    Ok(())
}

on_both_databases! { Stage {
    a_job_waits_for_evaluations_that_were_made_before_it_was_created,
    an_event_that_comes_twice_in_one_batch_does_not_stand_for_another_one,
    an_evaluation_that_overtakes_another_one_does_not_stand_for_it,
    an_evaluation_that_never_arrives_is_given_up_after_a_while,
    jobs_that_wait_for_evaluations_do_not_hold_up_others,
    a_job_waits_until_it_is_known_how_many_evaluations_there_are,
    a_job_does_not_wait_for_ever,
    a_file_holds_the_selected_rows_in_order,
    a_file_without_rows_is_its_header,
    an_event_wakes_a_worker_that_would_look_for_jobs_much_later,
    an_event_is_enough_when_the_clock_of_the_worker_is_behind,
    several_workers_do_each_job_once,
    a_worker_says_that_it_is_ready_and_stops_when_asked,
} }
