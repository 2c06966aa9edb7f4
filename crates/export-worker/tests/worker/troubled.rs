//! Jobs whose workers die or whose files cannot be written.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_export::domain::job::JobState;
use assay_testkit::{eventually, free_port, on_both_databases};

use crate::place::execute;
use crate::samples::{STARTED, evaluated};
use crate::silent_store::{Mood, SilentStore};
use crate::stage::{Stage, file_of};

async fn a_worker_that_died_hands_its_job_to_another(stage: Stage) -> Result<()> {
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let dead = stage.claim_and_die(3).await?;
    // What it had written but not shown.
    let mut left_behind = stage.objects.create(&dead.object_key()).await?;
    left_behind.finish().await?;
    let _worker = stage.worker(&stage.config()?)?;
    assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
    assert_eq!(stage.file(id).await?.object_key, stage.key(id, 2));
    eventually("the removal", || async { Ok(!stage.has_file(&dead.object_key()).await?) }).await
}

async fn a_job_whose_workers_died_with_every_attempt_fails(stage: Stage) -> Result<()> {
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    for _ in 0..3 {
        stage.claim_and_die(3).await?;
    }
    let _worker = stage.worker(&stage.config()?)?;
    let job = stage.status_becomes(id, ExportStatus::Failed).await?;
    let message = "the file could not be written in 3 attempts: create the export again, and if it fails again, \
                   give its id to whoever operates this service";
    assert_eq!(job.state, JobState::Failed { message: message.to_owned() });
    assert_eq!(stage.column(id, "attempts").await?, 3);
    Ok(())
}

async fn a_file_that_cannot_be_stored_fails_after_the_last_attempt(stage: Stage) -> Result<()> {
    // Where the folder of the files should be there is a file.
    std::fs::write(stage.files.path().join("exports"), b"in the way")?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&stage.config()?)?;
    let job = stage.status_becomes(id, ExportStatus::Failed).await?;
    let JobState::Failed { message } = job.state else { anyhow::bail!("{job:?}") };
    assert!(message.starts_with("the file could not be stored in 3 attempts"), "{message}");
    let internals = [stage.files.path().display().to_string(), "os error".to_owned(), "object".to_owned()];
    assert!(!internals.iter().any(|internal| message.contains(internal)), "{message}");
    assert_eq!(stage.column(id, "attempts").await?, 3);
    Ok(())
}

async fn rows_that_cannot_be_read_fail_the_job_and_leave_no_file(stage: Stage) -> Result<()> {
    stage.record(&[evaluated(stage.organization_id, STARTED)]).await?;
    execute(&stage.located.database, "UPDATE evaluation_rows SET columns_version = 99").await?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&stage.config()?)?;
    let job = stage.status_becomes(id, ExportStatus::Failed).await?;
    let JobState::Failed { message } = job.state else { anyhow::bail!("{job:?}") };
    assert!(message.starts_with("the evaluations could not be read in 3 attempts"), "{message}");
    for attempt in 1..=3 {
        assert!(!stage.has_file(&stage.key(id, attempt)).await?);
    }
    Ok(())
}

async fn a_job_succeeds_when_the_trouble_is_over_before_the_last_attempt(stage: Stage) -> Result<()> {
    let obstacle = stage.files.path().join("exports");
    std::fs::write(&obstacle, b"in the way")?;
    let mut config = stage.config()?;
    config.max_attempts = 1_000;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&config)?;
    eventually("an attempt", || async { Ok(stage.column(id, "attempts").await? >= 2) }).await?;
    std::fs::remove_file(&obstacle)?;
    assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
    Ok(())
}

async fn an_export_waits_for_a_store_that_cannot_be_reached_and_completes_when_it_is_back(
    mut stage: Stage,
) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    stage.objects = SilentStore::open_at(address)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let _worker = stage.worker(&stage.config()?)?;
    let job = stage.status_becomes(id, ExportStatus::Running).await?;
    assert_eq!(job.status(), ExportStatus::Running, "nothing is reported before the attempts are used up");
    let _store = SilentStore::start_at(address, Mood { silent_at: &[], refuses: &[] })?;
    stage.file(id).await.map(drop)
}

on_both_databases! { Stage {
    an_export_waits_for_a_store_that_cannot_be_reached_and_completes_when_it_is_back,
    a_worker_that_died_hands_its_job_to_another,
    a_job_whose_workers_died_with_every_attempt_fails,
    a_file_that_cannot_be_stored_fails_after_the_last_attempt,
    rows_that_cannot_be_read_fail_the_job_and_leave_no_file,
    a_job_succeeds_when_the_trouble_is_over_before_the_last_attempt,
} }
