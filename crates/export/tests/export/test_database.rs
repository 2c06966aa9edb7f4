//! A database for tests, and the stores on it.

use std::sync::Arc;

use anyhow::Result;
use assay_contracts::event::{ConversationEvaluated, ExportRequested};
use assay_contracts::export::{ExportFilters, ExportKind, NewExport};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::domain::job::Job;
use assay_export::store::{
    Creation, ExportStore, FileSelection, Notifications, WorkStore, export_store, line_channel, work_store,
};
use assay_export::{MIGRATIONS, SCHEMA};
use assay_messaging::OutgoingEvent;
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, eventually, number_on};

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

    /// Waits until the number of a query is this one.
    pub async fn number_becomes(&self, what: &str, query: &str, expected: i64) -> Result<()> {
        eventually(what, || async { Ok(number_on(&self.database, query).await? == expected) }).await
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

/// Records evaluations in one transaction.
pub async fn record(exports: &ExportStore, events: &[ConversationEvaluated]) -> Result<()> {
    let rows: Vec<_> = events.iter().map(|event| EvaluationRow::of(new_id(), event)).collect();
    Ok(exports.record_rows(Arc::new(rows), now()).await?)
}

/// Queues an export of AXIS lines.
pub async fn create_job(
    exports: &ExportStore,
    organization_id: OrganizationId,
    filters: ExportFilters,
    created_at: Timestamp,
    target_sequence: Option<i64>,
) -> Result<ExportId> {
    let export = NewExport { kind: ExportKind::Axis, format: Default::default(), filters };
    let job = Job::new(new_id(), organization_id, &export, created_at);
    let id = job.id;
    let requested = ExportRequested { organization_id, export_id: id, kind: job.kind };
    let event = OutgoingEvent::new(new_id(), created_at, &requested)?;
    exports.create(Creation { job, event, record: None, target_sequence, max_open: 1_000 }).await?;
    Ok(id)
}

/// The number of lines of a file, and its content without the header.
pub async fn read_lines(work: &WorkStore, selection: FileSelection) -> Result<(u64, Vec<u8>)> {
    let (sink, mut lines) = line_channel();
    let receiving = async {
        let mut content = Vec::new();
        while let Some(chunk) = lines.recv().await {
            content.extend_from_slice(&chunk);
        }
        content
    };
    let (count, content) = tokio::join!(work.copy_lines(selection, sink), receiving);
    Ok((count?, content))
}
