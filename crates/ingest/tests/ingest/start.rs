//! Starting and stopping the role.

use std::time::Duration;

use anyhow::Result;
use assay_ingest::{SCHEMA, migrate};
use assay_platform::runtime::Budgets;
use assay_testkit::{ServiceDatabase, eventually};

use crate::test_app::{TestApp, config, conversation, query};

#[tokio::test(flavor = "multi_thread")]
async fn role_starts_without_tables_and_accepts_after_migration() -> Result<()> {
    let service_database = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let mut config = config(&service_database)?;
    config.accept_deadline_milliseconds = 300;
    let app = TestApp::run(config, service_database)?;
    let ready =
        || async { Ok(app.http.get(format!("{}/readyz", app.address)).send().await?.status().is_success()) };
    assert!(!ready().await?);
    assert_ne!(app.submit(&conversation("T-1")).await?.status(), 202);
    migrate(&app.config).await?;
    eventually("the role to be ready", ready).await?;
    app.accepted(&conversation("T-1")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_stored_in_the_partition_of_their_month() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    app.accepted(&conversation("T-1")).await?;
    let partitions = "SELECT tableoid::regclass::text AS value FROM conversations";
    let expected = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"conversations_\"YYYY_MM') AS value";
    assert_eq!(query(&app.database, partitions).await?, query(&app.database, expected).await?);
    let ahead = "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '3 months', '\"conversations_\"YYYY_MM') AS value";
    let tables =
        query(&app.database, "SELECT relname::text AS value FROM pg_class WHERE relkind = 'r'").await?;
    assert!(
        query(&app.database, ahead).await?.iter().all(|partition| tables.contains(partition)),
        "{tables:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_completes_within_its_budget() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    app.accepted(&conversation("T-1")).await?;
    let budgets = Budgets { per_phase: Duration::from_secs(5), drain: Duration::ZERO };
    app.tasks.run(async {}, budgets).await?;
    Ok(())
}
