//! A fresh database with its stores, and workers on it.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationEvaluated, ExportRequested};
use assay_contracts::export::{ExportFilters, ExportFormat, ExportKind, ExportStatus, NewExport};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_export::domain::csv::{header, render};
use assay_export::domain::job::{Job, JobState, StoredFile};
use assay_export::domain::lease::{Claim, ClaimTerms};
use assay_export::store::{Creation, ExportStore, Notifications, WorkStore, export_store, work_store};
use assay_export_worker::{Config, Dependencies, start};
use assay_messaging::{Bus, BusSettings, OutgoingEvent};
use assay_platform::auth::ServiceTokens;
use assay_platform::objects::{ObjectError, Objects};
use assay_platform::runtime::{Readiness, ShutdownBudgets, TaskFailure, Tasks, new_id, now};
use assay_testkit::{eventually, number_on};
use futures_util::StreamExt as _;
use tempfile::TempDir;
use url::Url;

use crate::registry::Registry;
use crate::test_database::{TestDatabase, record};

pub struct TestApp {
    pub test_database: TestDatabase,
    pub exports: ExportStore,
    pub work: WorkStore,
    pub bus: Bus,
    pub objects: Objects,
    pub organization_id: OrganizationId,
    pub files: TempDir,
    pub registry: Registry,
    registry_url: Url,
    _registry_tasks: Tasks,
}

impl TestApp {
    pub async fn on_sqlite() -> Result<Self> {
        Self::at(TestDatabase::sqlite().await?)
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::at(TestDatabase::postgres().await?)
    }

    fn at(test_database: TestDatabase) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let mut registry_tasks = Tasks::new(Readiness::default());
        let (registry, registry_url) = Registry::start(&mut registry_tasks)?;
        Ok(Self {
            exports: export_store(&test_database.database),
            work: work_store(&test_database.database, Notifications::Off),
            test_database,
            bus: Bus::open(&BusSettings::new("local:".to_owned()))?,
            objects: Objects::open(&format!("file://{}", files.path().display()), [])?,
            organization_id: new_id(),
            files,
            registry,
            registry_url,
            _registry_tasks: registry_tasks,
        })
    }

    /// Starts a worker with short intervals; it stops when the tasks are dropped.
    pub fn worker(&self) -> Result<Tasks> {
        self.worker_with(|_| ())
    }

    /// The same with other settings.
    pub fn worker_with(&self, change: impl FnOnce(&mut Config)) -> Result<Tasks> {
        let mut config = Config {
            listen: "127.0.0.1:0".parse()?,
            database_url: self.test_database.settings().database_url,
            database_pool_size: self.test_database.settings().database_pool_size,
            parallel_jobs: 2,
            lease_milliseconds: 60_000,
            poll_interval_milliseconds: 20,
            pending_grace_milliseconds: 0,
            max_attempts: 3,
            retry_delay_milliseconds: 1,
            evaluations_wait_milliseconds: 20_000,
            file_retention_days: 30,
            // In every test a sweeper runs that removes young files, too.
            sweep_grace_seconds: 0,
            maintenance_interval_seconds: 1,
        };
        change(&mut config);
        let dependencies = Dependencies {
            listener: TcpListener::bind("127.0.0.1:0")?,
            bus: self.bus.clone(),
            objects: self.objects.clone(),
            tokens: ServiceTokens::new(&"a secret of the tests of the export worker".to_owned().into())?,
            registry_url: self.registry_url.clone(),
            notifications: Notifications::Off,
        };
        let mut tasks = Tasks::new(Readiness::default());
        start(&config, dependencies, &mut tasks)?;
        Ok(tasks)
    }

    pub async fn record(&self, events: &[ConversationEvaluated]) -> Result<()> {
        record(&self.exports, events).await
    }

    pub async fn create(&self, kind: ExportKind, filters: ExportFilters) -> Result<ExportId> {
        Ok(self.create_job(now(), kind, filters, Some(0)).await?.0)
    }

    /// Creates a job as the export role does when scoring-worker answers.
    pub async fn create_with_target(&self, target_sequence: i64) -> Result<ExportId> {
        let filters = ExportFilters::default();
        Ok(self.create_job(now(), ExportKind::Axis, filters, Some(target_sequence)).await?.0)
    }

    /// Creates a job as the export role does when scoring-worker is unreachable.
    pub async fn create_without_target(&self) -> Result<ExportId> {
        Ok(self.create_job(now(), ExportKind::Axis, ExportFilters::default(), None).await?.0)
    }

    /// Creates a job while the clock of the export role shows `created_at`; returns its event, too.
    pub async fn create_at(&self, created_at: Timestamp) -> Result<(ExportId, OutgoingEvent)> {
        self.create_job(created_at, ExportKind::Axis, ExportFilters::default(), Some(0)).await
    }

    async fn create_job(
        &self,
        created_at: Timestamp,
        kind: ExportKind,
        filters: ExportFilters,
        target_sequence: Option<i64>,
    ) -> Result<(ExportId, OutgoingEvent)> {
        let organization_id = self.organization_id;
        let export = NewExport { kind, format: ExportFormat::Csv, filters };
        let job = Job::new(new_id(), organization_id, &export, created_at);
        let id = job.id;
        let requested = ExportRequested { organization_id, export_id: id, kind };
        let event = OutgoingEvent::new(new_id(), now(), &requested)?;
        let creation = Creation { job, event: event.clone(), record: None, target_sequence, max_open: 1_000 };
        self.exports.create(creation).await?;
        Ok((id, event))
    }

    /// Claims a job as a worker that crashes afterwards; with the maximum of attempts of [`Self::worker`].
    pub async fn claim_and_crash(&self) -> Result<Claim> {
        let terms = ClaimTerms {
            owner: new_id(),
            now: now(),
            // The lease has expired already.
            lease_millis: -1,
            latest_lease_end: Timestamp::MAX,
            pending_before: now().plus_millis(1_000),
            max_attempts: 3,
            except: None,
        };
        self.work.claim(terms).await?.context("no job waits")
    }

    pub async fn job(&self, id: ExportId) -> Result<Job> {
        self.exports.find(self.organization_id, id).await?.context("no such job")
    }

    pub async fn status_becomes(&self, id: ExportId, status: ExportStatus) -> Result<Job> {
        eventually(&format!("status {status:?}"), || async { Ok(self.job(id).await?.status() == status) })
            .await?;
        self.job(id).await
    }

    /// Waits for the file of a job.
    pub async fn file(&self, id: ExportId) -> Result<StoredFile> {
        match self.status_becomes(id, ExportStatus::Complete).await?.state {
            JobState::Complete(file) => Ok(file),
            other => anyhow::bail!("{other:?}"),
        }
    }

    pub async fn content(&self, id: ExportId) -> Result<String> {
        let file = self.file(id).await?;
        let mut chunks = self.objects.read(&file.object_key, 0..file.bytes).await?;
        let mut content = Vec::new();
        while let Some(chunk) = chunks.next().await {
            content.extend_from_slice(&chunk?);
        }
        Ok(String::from_utf8(content)?)
    }

    pub fn key(&self, id: ExportId, attempt: u32) -> String {
        format!("exports/{}/{id}/{attempt}.csv", self.organization_id)
    }

    pub async fn has_file(&self, key: &str) -> Result<bool> {
        match self.objects.size(key).await {
            Ok(_) => Ok(true),
            Err(ObjectError::NotFound(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn column(&self, id: ExportId, column: &str) -> Result<i64> {
        number_on(
            &self.test_database.database,
            &format!("SELECT CAST({column} AS bigint) FROM exports WHERE id = '{id}'"),
        )
        .await
    }
}

/// Stops a worker and waits for its end.
pub async fn stop(worker: Tasks) -> Result<(), TaskFailure> {
    let budgets = ShutdownBudgets { per_phase: Duration::from_secs(20), drain: Duration::ZERO };
    worker.run(async {}, budgets).await
}

/// The expected content of a file with these evaluations.
pub fn file_of<'e>(kind: ExportKind, events: impl IntoIterator<Item = &'e ConversationEvaluated>) -> String {
    let lines = events.into_iter().map(|event| render(kind, event) + "\r\n");
    std::iter::once(header(kind)).chain(lines).collect()
}
