//! Starting and stopping the role.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_ingest::{MIGRATIONS, SCHEMA, migrate};
use assay_platform::runtime::ShutdownBudgets;
use assay_testkit::{ServiceDatabase, eventually, execute_on, texts_on};

use crate::test_app::{TestApp, config, conversation};

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
    app.import(&conversation("T-1")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_stored_in_the_partition_of_their_month() -> Result<()> {
    let app = TestApp::on_postgres().await?;
    app.import(&conversation("T-1")).await?;
    let partitions = "SELECT tableoid::regclass::text AS value FROM conversations";
    let expected = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"conversations_\"YYYY_MM') AS value";
    assert_eq!(texts_on(&app.database, partitions).await?, texts_on(&app.database, expected).await?);
    const NAME_IN_THREE_MONTHS: &str = "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '3 months', '\"conversations_\"YYYY_MM') AS value";
    const TABLES: &str = "SELECT relname::text AS value FROM pg_class WHERE relkind = 'r'";
    let ahead = texts_on(&app.database, NAME_IN_THREE_MONTHS).await?;
    eventually("the partitions of the coming months", || async {
        let tables = texts_on(&app.database, TABLES).await?;
        Ok(ahead.iter().all(|partition| tables.contains(partition)))
    })
    .await?;
    Ok(())
}

/// The default partition holds 200,000 conversations, as after a period with a clock four months ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn role_accepts_at_once_with_a_large_default_partition() -> Result<()> {
    const INSERT_FUTURE_ROWS: &str = "
        INSERT INTO conversations (id, organization_id, external_id, source, started_at, ended_at, created_at, agents, packed)
        SELECT (lpad(to_hex(base.ms + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
               gen_random_uuid(), 'T-' || n, 'custom', 0, 0, base.ms, '[]', '\\x00'
          FROM (SELECT generate_series(count(*) + 1, count(*) + 50000) AS n FROM conversations) numbers,
               (SELECT (extract(epoch FROM now() + interval '4 months') * 1000)::bigint AS ms) base";
    const COUNT_ROWS: &str = "SELECT count(*)::text || ' ' || count(DISTINCT id) AS value FROM conversations";
    const COUNT_DEFAULT_ROWS: &str = "SELECT count(*)::text AS value FROM conversations_default";
    let service_database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
    for _ in 0..4 {
        execute_on(&service_database.open(SCHEMA)?, INSERT_FUTURE_ROWS).await?;
    }
    let config = config(&service_database)?;
    let began = Instant::now();
    let app = TestApp::run(config, service_database)?;
    app.import(&conversation("T-1")).await?;
    let accepted_after = began.elapsed();
    println!("accepted after {accepted_after:?}");
    assert!(accepted_after < Duration::from_secs(5), "{accepted_after:?}");
    let mut accepted = 1;
    let mut longest = Duration::ZERO;
    while texts_on(&app.database, COUNT_DEFAULT_ROWS).await? != ["0"] {
        anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "the rows are not moved");
        let submitted = Instant::now();
        app.import(&conversation(&format!("meanwhile {accepted}"))).await?;
        longest = longest.max(submitted.elapsed());
        accepted += 1;
        let rows = 200_000 + accepted;
        assert_eq!(texts_on(&app.database, COUNT_ROWS).await?, [format!("{rows} {rows}")]);
    }
    println!("moved after {:?}; {accepted} accepted meanwhile, the slowest in {longest:?}", began.elapsed());
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_completes_within_its_budget() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    app.import(&conversation("T-1")).await?;
    let budgets = ShutdownBudgets { per_phase: Duration::from_secs(5), drain: Duration::ZERO };
    app.tasks.run(async {}, budgets).await?;
    Ok(())
}
