//! Crashed workers and files that cannot be written.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_export::domain::job::JobState;
use assay_testkit::{eventually, execute_on, free_port, on_both_databases};

use crate::samples::{STARTED, evaluated};
use crate::test_app::{TestApp, file_of};
use crate::unresponsive_store::{Behaviour, UnresponsiveStore};

async fn job_of_a_crashed_worker_is_taken_over(app: TestApp) -> Result<()> {
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let crashed = app.claim_and_crash().await?;
    // Written, but its job is not complete.
    let mut writer = app.objects.create(&crashed.object_key()).await?;
    writer.finish().await?;
    let _worker = app.worker()?;
    assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
    assert_eq!(app.file(id).await?.object_key, app.key(id, 2));
    eventually("the removal", || async { Ok(!app.has_file(&crashed.object_key()).await?) }).await
}

async fn job_whose_workers_crashed_in_every_attempt_fails(app: TestApp) -> Result<()> {
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    for _ in 0..3 {
        app.claim_and_crash().await?;
    }
    let _worker = app.worker()?;
    let job = app.status_becomes(id, ExportStatus::Failed).await?;
    let message = "the file could not be written in 3 attempts: create the export again, and if it fails again, \
                   give its id to the operator of this service";
    assert_eq!(job.state, JobState::Failed { message: message.to_owned() });
    assert_eq!(app.column(id, "attempts").await?, 3);
    Ok(())
}

async fn storage_failure_fails_the_job_after_the_last_attempt(app: TestApp) -> Result<()> {
    // A file in the place of the directory.
    std::fs::write(app.files.path().join("exports"), b"in the way")?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker()?;
    let job = app.status_becomes(id, ExportStatus::Failed).await?;
    let JobState::Failed { message } = job.state else { anyhow::bail!("{job:?}") };
    assert!(message.starts_with("the file could not be stored in 3 attempts"), "{message}");
    let internals = [app.files.path().display().to_string(), "os error".to_owned(), "object".to_owned()];
    assert!(!internals.iter().any(|internal| message.contains(internal)), "{message}");
    assert_eq!(app.column(id, "attempts").await?, 3);
    Ok(())
}

async fn unreadable_rows_fail_the_job_without_a_file(app: TestApp) -> Result<()> {
    app.record(&[evaluated(app.organization_id, STARTED)]).await?;
    execute_on(&app.test_database.database, "UPDATE evaluation_rows SET columns_version = 99").await?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker()?;
    let job = app.status_becomes(id, ExportStatus::Failed).await?;
    let JobState::Failed { message } = job.state else { anyhow::bail!("{job:?}") };
    assert!(message.starts_with("the evaluations could not be read in 3 attempts"), "{message}");
    for attempt in 1..=3 {
        assert!(!app.has_file(&app.key(id, attempt)).await?);
    }
    Ok(())
}

async fn job_succeeds_after_a_transient_storage_failure(app: TestApp) -> Result<()> {
    let obstacle = app.files.path().join("exports");
    std::fs::write(&obstacle, b"in the way")?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker_with(|config| config.max_attempts = 1_000)?;
    eventually("an attempt", || async { Ok(app.column(id, "attempts").await? >= 2) }).await?;
    std::fs::remove_file(&obstacle)?;
    assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
    Ok(())
}

async fn job_completes_when_the_object_store_recovers(mut app: TestApp) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    app.objects = UnresponsiveStore::open_at(address)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = app.worker()?;
    let job = app.status_becomes(id, ExportStatus::Running).await?;
    assert_eq!(job.status(), ExportStatus::Running, "the job fails only after its last attempt");
    let _store = UnresponsiveStore::start_at(address, Behaviour { hangs_at: &[], refused_steps: &[] })?;
    app.file(id).await.map(drop)
}

on_both_databases! { TestApp {
    job_completes_when_the_object_store_recovers,
    job_of_a_crashed_worker_is_taken_over,
    job_whose_workers_crashed_in_every_attempt_fails,
    storage_failure_fails_the_job_after_the_last_attempt,
    unreadable_rows_fail_the_job_without_a_file,
    job_succeeds_after_a_transient_storage_failure,
} }
