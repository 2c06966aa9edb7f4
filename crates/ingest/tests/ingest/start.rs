//! Starting and stopping the role.

use std::time::Duration;

use anyhow::Result;
use assay_ingest::{SCHEMA, migrate};
use assay_platform::runtime::Budgets;
use assay_testkit::{ServiceDatabase, eventually};

use crate::stage::{Stage, config, conversation, query};

#[tokio::test(flavor = "multi_thread")]
async fn the_role_starts_before_its_tables_exist_and_accepts_once_they_do() -> Result<()> {
    let place = ServiceDatabase::empty_sqlite(SCHEMA)?;
    let mut config = config(&place)?;
    config.accept_deadline_milliseconds = 300;
    let stage = Stage::run(config, place)?;
    let ready = || async {
        Ok(stage.http.get(format!("{}/readyz", stage.address)).send().await?.status().is_success())
    };
    assert!(!ready().await?);
    assert_ne!(stage.submit(&conversation("T-1")).await?.status(), 202);
    migrate(&stage.config).await?;
    eventually("the role to be ready", ready).await?;
    stage.accepted(&conversation("T-1")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_lie_in_the_partition_of_their_month() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    stage.accepted(&conversation("T-1")).await?;
    let partitions = "SELECT tableoid::regclass::text AS value FROM conversations";
    let expected = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"conversations_\"YYYY_MM') AS value";
    assert_eq!(query(&stage.database, partitions).await?, query(&stage.database, expected).await?);
    let ahead = "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '3 months', '\"conversations_\"YYYY_MM') AS value";
    let tables =
        query(&stage.database, "SELECT relname::text AS value FROM pg_class WHERE relkind = 'r'").await?;
    assert!(
        query(&stage.database, ahead).await?.iter().all(|partition| tables.contains(partition)),
        "{tables:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_stops_in_order_and_in_time() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    stage.accepted(&conversation("T-1")).await?;
    let budgets = Budgets { per_phase: Duration::from_secs(5), drain: Duration::ZERO };
    stage.tasks.run(async {}, budgets).await?;
    Ok(())
}
