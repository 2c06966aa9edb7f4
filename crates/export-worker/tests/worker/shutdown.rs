//! Shutdown of a worker while the object store hangs, and refused uploads.

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_testkit::eventually;

use crate::test_app::{TestApp, stop};
use crate::unresponsive_store::{Behaviour, Step, UnresponsiveStore};

/// Stops a worker after the store has seen the step `awaited`.
async fn stop_while_the_store_hangs(awaited: Step, hangs_at: &'static [Step]) -> Result<UnresponsiveStore> {
    let store = UnresponsiveStore::start(Behaviour { hangs_at, refused_steps: &[] })?;
    let mut app = TestApp::on_sqlite().await?;
    app.objects = store.open()?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = app.worker()?;
    eventually("the request", || async { Ok(store.has_seen(awaited)) }).await?;
    // Fails when the worker does not stop within the budget of its phase.
    stop(worker).await?;
    assert_eq!(app.job(id).await?.status(), ExportStatus::Running);
    let released = (app.column(id, "attempts").await?, app.column(id, "released_claims").await?);
    assert_eq!(released, (1, 1), "{awaited:?}");
    Ok(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_releases_its_job_when_the_upload_does_not_start() -> Result<()> {
    stop_while_the_store_hangs(Step::Create, &[Step::Create]).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_aborts_a_hanging_upload_and_releases_its_job() -> Result<()> {
    const CASES: [(Step, &[Step]); 2] =
        [(Step::SendPart, &[Step::SendPart]), (Step::Complete, &[Step::Complete])];
    for (awaited, hangs_at) in CASES {
        let store = stop_while_the_store_hangs(awaited, hangs_at).await?;
        assert!(store.has_seen(Step::Abort), "{awaited:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_stops_although_the_abort_of_an_upload_hangs() -> Result<()> {
    const HANGING: &[Step] = &[Step::Complete, Step::Abort, Step::Other];
    let store = stop_while_the_store_hangs(Step::Complete, HANGING).await?;
    assert!(store.has_seen(Step::Abort));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upload_is_aborted_when_completing_it_is_refused() -> Result<()> {
    let store = UnresponsiveStore::start(Behaviour { hangs_at: &[], refused_steps: &[Step::Complete] })?;
    let mut app = TestApp::on_sqlite().await?;
    app.objects = store.open()?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker_with(|config| config.max_attempts = 1)?;
    app.status_becomes(id, ExportStatus::Failed).await?;
    assert!(store.has_seen(Step::Abort));
    Ok(())
}
