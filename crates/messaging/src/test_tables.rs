//! The tables of this crate on a new database, for suites that run on both kinds.

use anyhow::Result;
use assay_platform::db::{Database, Migrations};
use assay_testkit::ServiceDatabase;

/// The schema of a service, that of any will do.
const SCHEMA: &str = "ingest";
static MIGRATIONS: [Migrations; 1] = [crate::MIGRATIONS];

/// A migrated database, and what removes it when dropped.
pub(crate) struct Tables(pub Database, #[allow(dead_code, reason = "only dropped")] pub ServiceDatabase);

impl Tables {
    pub async fn on_sqlite() -> Result<Self> {
        let kept = ServiceDatabase::sqlite(SCHEMA, &MIGRATIONS).await?;
        Ok(Self(kept.open(SCHEMA)?, kept))
    }

    pub async fn on_postgres() -> Result<Self> {
        let kept = ServiceDatabase::postgres(SCHEMA, &MIGRATIONS).await?;
        Ok(Self(kept.open(SCHEMA)?, kept))
    }
}
