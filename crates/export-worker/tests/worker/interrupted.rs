//! Jobs that are interrupted half-way. A lock on the table of rows holds a worker where a large file would.

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_testkit::eventually;
use diesel::PgConnection;
use diesel::connection::{Connection as _, SimpleConnection as _};
use secrecy::ExposeSecret as _;

use crate::place::execute;
use crate::stage::{Stage, file_of, stop};

/// A lease that tests can wait for. Hearts beat three times in it; a machine that stands still for all of it would fail
/// the tests, one that is merely slow does not.
const SHORT_LEASE: u32 = 6_000;

/// Holds every reader of the rows until it is dropped.
struct Lock {
    _connection: PgConnection,
}

impl Lock {
    fn take(stage: &Stage) -> Result<Self> {
        let mut connection = PgConnection::establish(stage.located.settings().database_url.expose_secret())?;
        connection.batch_execute("BEGIN; LOCK TABLE export.evaluation_rows IN ACCESS EXCLUSIVE MODE")?;
        Ok(Self { _connection: connection })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_gives_its_job_back() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    let lock = Lock::take(&stage)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = stage.worker(&stage.config()?)?;
    stage.status_becomes(id, ExportStatus::Running).await?;
    stop(worker).await?;
    assert_eq!(stage.job(id).await?.status(), ExportStatus::Running);
    assert_eq!((stage.column(id, "attempts").await?, stage.column(id, "hand_backs").await?), (1, 1));
    drop(lock);
    // Nothing has to run out first: the lease would last a minute.
    let _heir = stage.worker(&stage.config()?)?;
    assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
    assert!(!stage.has_file(&stage.key(id, 1)).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_lost_its_hold_shows_nothing() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    let lock = Lock::take(&stage)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let mut config = stage.config()?;
    config.lease_milliseconds = SHORT_LEASE;
    config.parallel_jobs = 1;
    let worker = stage.worker(&config)?;
    stage.status_becomes(id, ExportStatus::Running).await?;
    let heir = uuid::Uuid::now_v7();
    let taken_over =
        format!("UPDATE exports SET lease_owner = '{heir}', lease_until = 9e15::bigint, attempts = 2");
    execute(&stage.located.database, taken_over).await?;
    // Its next heartbeat tells it; then its only slot is free for the next job, which waits for the lock like the first.
    let other = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    stage.status_becomes(other, ExportStatus::Running).await?;
    drop(lock);
    assert_eq!(stage.content(other).await?, file_of(ExportKind::Axis, []));
    stop(worker).await?;
    assert_eq!(stage.job(id).await?.status(), ExportStatus::Running);
    for attempt in [1, 2] {
        assert!(!stage.has_file(&stage.key(id, attempt)).await?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_takes_longer_than_its_lease_is_kept_by_heartbeats() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    let lock = Lock::take(&stage)?;
    let id = stage.create(ExportKind::Axis, ExportFilters::default()).await?;
    let mut config = stage.config()?;
    config.lease_milliseconds = SHORT_LEASE;
    let _workers = [stage.worker(&config)?, stage.worker(&config)?];
    stage.status_becomes(id, ExportStatus::Running).await?;
    let first_lease_until = stage.column(id, "lease_until").await?;
    // All the time the other worker looks for jobs whose lease has ended.
    eventually("a heartbeat beyond the first lease", || async {
        Ok(stage.job(id).await?.updated_at.as_millis() > first_lease_until)
    })
    .await?;
    drop(lock);
    assert_eq!(stage.content(id).await?, file_of(ExportKind::Axis, []));
    assert_eq!(stage.column(id, "attempts").await?, 1);
    Ok(())
}
