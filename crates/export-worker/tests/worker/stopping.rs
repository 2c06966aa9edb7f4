//! Object stores that say nothing while a worker is asked to stop, and that refuse the last step.

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_testkit::eventually;

use crate::silent_store::{Mood, SilentStore, Step};
use crate::stage::{Stage, stop};

async fn a_worker_stops_while_the_store_is_silent(
    asked: Step,
    silent_at: &'static [Step],
) -> Result<SilentStore> {
    let store = SilentStore::start(Mood { silent_at, refuses: &[] })?;
    let mut stage = Stage::on_sqlite().await?;
    stage.objects = store.open()?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = stage.worker(&stage.config()?)?;
    eventually("the request", || async { Ok(store.has_seen(asked)) }).await?;
    // Fails when the worker does not stop within the budget of its phase.
    stop(worker).await?;
    assert_eq!(stage.job(id).await?.status(), ExportStatus::Running);
    let given_back = (stage.column(id, "attempts").await?, stage.column(id, "hand_backs").await?);
    assert_eq!(given_back, (1, 1), "{asked:?}");
    Ok(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_store_does_not_begin_the_upload_gives_its_job_back() -> Result<()> {
    a_worker_stops_while_the_store_is_silent(Step::Create, &[Step::Create]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_store_does_not_end_the_upload_aborts_it_and_gives_its_job_back() -> Result<()> {
    const CASES: [(Step, &[Step]); 2] =
        [(Step::SendPart, &[Step::SendPart]), (Step::Complete, &[Step::Complete])];
    for (asked, silent_at) in CASES {
        let store = a_worker_stops_while_the_store_is_silent(asked, silent_at).await?;
        assert!(store.has_seen(Step::Abort), "{asked:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_does_not_wait_for_an_upload_that_cannot_be_aborted() -> Result<()> {
    const SILENT: &[Step] = &[Step::Complete, Step::Abort, Step::Other];
    let store = a_worker_stops_while_the_store_is_silent(Step::Complete, SILENT).await?;
    assert!(store.has_seen(Step::Abort));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_whose_end_is_refused_is_aborted() -> Result<()> {
    let store = SilentStore::start(Mood { silent_at: &[], refuses: &[Step::Complete] })?;
    let mut stage = Stage::on_sqlite().await?;
    stage.objects = store.open()?;
    let mut config = stage.config()?;
    config.max_attempts = 1;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&config)?;
    stage.status_becomes(id, ExportStatus::Failed).await?;
    assert!(store.has_seen(Step::Abort));
    Ok(())
}
