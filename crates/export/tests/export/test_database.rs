//! A database for tests, and the stores on it.

use anyhow::Result;
use assay_contracts::ids::OrganizationId;
use assay_export::store::{ExportStore, Notifications, WorkStore, export_store, work_store};
use assay_export::{MIGRATIONS, SCHEMA};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::new_id;
use assay_testkit::ServiceDatabase;

/// A migrated database.
pub struct TestDatabase {
    pub database: Database,
    service: ServiceDatabase,
}

impl TestDatabase {
    pub async fn sqlite() -> Result<Self> {
        Self::at(ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?)
    }

    pub async fn postgres() -> Result<Self> {
        Self::at(ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?)
    }

    pub fn settings(&self) -> DatabaseSettings {
        self.service.settings()
    }

    fn at(service: ServiceDatabase) -> Result<Self> {
        Ok(Self { database: service.open(SCHEMA)?, service })
    }
}

/// The stores on a new database, with notifications of finished jobs, and an organization for what a test stores. Each suite
/// adds its steps.
pub struct Stores {
    pub test_database: TestDatabase,
    pub exports: ExportStore,
    pub work: WorkStore,
    pub organization_id: OrganizationId,
}

impl Stores {
    pub async fn on_sqlite() -> Result<Self> {
        Ok(Self::at(TestDatabase::sqlite().await?))
    }

    pub async fn on_postgres() -> Result<Self> {
        Ok(Self::at(TestDatabase::postgres().await?))
    }

    fn at(test_database: TestDatabase) -> Self {
        let (exports, work) =
            (export_store(&test_database.database), work_store(&test_database.database, Notifications::On));
        Self { test_database, exports, work, organization_id: new_id() }
    }
}
