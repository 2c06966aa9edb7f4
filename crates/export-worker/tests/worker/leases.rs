//! Interrupted jobs. A lock on the table of rows delays a worker as a large file would.

use std::time::Duration;

use anyhow::Result;
use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_export_worker::Config;
use assay_platform::runtime::now;
use assay_testkit::{eventually, execute_on, number_on};
use diesel::PgConnection;
use diesel::connection::{Connection as _, SimpleConnection as _};
use secrecy::ExposeSecret as _;

use crate::test_app::{TestApp, file_of, stop};

/// A lease that tests can wait for, renewed every two seconds. The tests fail only if the machine stalls for the whole lease.
const SHORT_LEASE: u32 = 6_000;

/// A lock in the database, held until it is dropped.
struct Lock {
    _connection: PgConnection,
}

impl Lock {
    /// Blocks the readers of the table of rows.
    fn on_rows(app: &TestApp) -> Result<Self> {
        Self::take(app, "LOCK TABLE export.evaluation_rows IN ACCESS EXCLUSIVE MODE")
    }

    /// Blocks every claim.
    fn on_claims(app: &TestApp) -> Result<Self> {
        Self::take(app, "SELECT pg_advisory_xact_lock(hashtextextended('assay export claims', 0))")
    }

    fn take(app: &TestApp, statement: &str) -> Result<Self> {
        let mut connection =
            PgConnection::establish(app.test_database.settings().database_url.expose_secret())?;
        connection.batch_execute(&format!("BEGIN; {statement}"))?;
        Ok(Self { _connection: connection })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_worker_releases_its_job() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    let lock = Lock::on_rows(&app)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = app.worker()?;
    app.status_becomes(id, ExportStatus::Running).await?;
    stop(worker).await?;
    assert_eq!(app.job(id).await?.status(), ExportStatus::Running);
    assert_eq!((app.column(id, "attempts").await?, app.column(id, "released_claims").await?), (1, 1));
    drop(lock);
    // The lease was released: otherwise it would last a minute.
    let _successor = app.worker()?;
    assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
    assert!(!app.has_file(&app.key(id, 1)).await?);
    Ok(())
}

/// A claim of the other slot is under way when the worker stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_worker_does_not_claim_its_own_job_again() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    let rows = Lock::on_rows(&app)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = app.worker()?;
    app.status_becomes(id, ExportStatus::Running).await?;
    let claims = Lock::on_claims(&app)?;
    eventually("a claim under way", || async {
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        Ok(number_on(&app.test_database.database, waiting).await? > 0)
    })
    .await?;
    let (stopped, ()) = tokio::join!(stop(worker), async {
        // Gives a release that does not wait for the claim time to come first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(claims);
    });
    stopped?;
    drop(rows);
    assert_eq!(app.job(id).await?.status(), ExportStatus::Running);
    assert_eq!((app.column(id, "attempts").await?, app.column(id, "released_claims").await?), (1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_with_a_lost_lease_completes_nothing() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    let lock = Lock::on_rows(&app)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let worker = app.worker_with(|config| {
        config.lease_milliseconds = SHORT_LEASE;
        config.parallel_jobs = 1;
    })?;
    app.status_becomes(id, ExportStatus::Running).await?;
    let successor = uuid::Uuid::now_v7();
    let until = now().plus_millis(120_000).as_millis();
    let taken_over =
        format!("UPDATE exports SET lease_owner = '{successor}', lease_until = {until}, attempts = 2");
    execute_on(&app.test_database.database, taken_over).await?;
    // The next renewal detects it. Then the only slot is free for the next job, which waits for the lock like the first.
    let other = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    app.status_becomes(other, ExportStatus::Running).await?;
    drop(lock);
    assert_eq!(app.content(other).await?, file_of(ExportKind::Axis, []));
    stop(worker).await?;
    assert_eq!(app.job(id).await?.status(), ExportStatus::Running);
    for attempt in [1, 2] {
        assert!(!app.has_file(&app.key(id, attempt)).await?);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_keep_the_lease_of_a_long_job() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    let lock = Lock::on_rows(&app)?;
    let id = app.create(ExportKind::Axis, ExportFilters::default()).await?;
    let shorten = |config: &mut Config| config.lease_milliseconds = SHORT_LEASE;
    let _workers = [app.worker_with(shorten)?, app.worker_with(shorten)?];
    app.status_becomes(id, ExportStatus::Running).await?;
    let first_lease_until = app.column(id, "lease_until").await?;
    // Meanwhile the other worker polls for expired leases.
    eventually("a renewal after the end of the first lease", || async {
        Ok(app.job(id).await?.updated_at.as_millis() > first_lease_until)
    })
    .await?;
    drop(lock);
    assert_eq!(app.content(id).await?, file_of(ExportKind::Axis, []));
    assert_eq!(app.column(id, "attempts").await?, 1);
    Ok(())
}
