//! A new, migrated database for one test: PostgreSQL or SQLite.

use anyhow::Result;
use assay_platform::db::{Database, DatabaseSettings, Migrations};
use assay_testkit::{Template, TestDatabase};

/// A database, and the guard that removes it.
pub struct Fresh<Kept> {
    pub database: Database,
    _kept: Kept,
}

pub async fn sqlite(migrations: &'static [Migrations]) -> Result<Fresh<tempfile::TempDir>> {
    let folder = tempfile::tempdir()?;
    let database = open(&format!("sqlite:{}", folder.path().join("test.db").display()))?;
    database.migrate(migrations).await?;
    Ok(Fresh { database, _kept: folder })
}

pub async fn postgres(migrations: &'static [Migrations]) -> Result<Fresh<TestDatabase>> {
    const FINGERPRINT: &str = include_str!("../migrations/postgres/2026-11-26-000001_bus/up.sql");
    let create = move || {
        TestDatabase::create(&Template::new("messaging", FINGERPRINT), |url| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(open(url)?.migrate(migrations))?;
            Ok(())
        })
    };
    let kept = assay_platform::runtime::blocking(create).await??;
    Ok(Fresh { database: open(kept.url())?, _kept: kept })
}

fn open(url: &str) -> Result<Database> {
    let settings = DatabaseSettings { database_url: url.into(), database_pool_size: 8 };
    Ok(Database::open(&settings, "messaging")?)
}
