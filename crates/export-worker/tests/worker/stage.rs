//! A database with rows, and workers that run on it.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationEvaluated, ExportRequested};
use assay_contracts::export::{ExportFilters, ExportFormat, ExportKind, ExportStatus, NewExport};
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_export::domain::csv::{header, render};
use assay_export::domain::evaluation_row::EvaluationRow;
use assay_export::domain::job::{Job, JobState, StoredFile};
use assay_export::domain::lease::{Claim, ClaimTerms};
use assay_export::store::{
    Announces, Creation, ExportStore, ReceivedRow, WorkStore, export_store, work_store,
};
use assay_export_worker::{Config, Dependencies, start};
use assay_messaging::{Bus, BusSettings, OutgoingEvent};
use assay_platform::auth::ServiceTokens;
use assay_platform::objects::{ObjectError, Objects};
use assay_platform::runtime::{Budgets, Readiness, TaskFailure, Tasks, new_id, now};
use assay_testkit::eventually;
use futures_util::StreamExt as _;
use tempfile::TempDir;
use url::Url;

use crate::place::{Located, number};
use crate::registry::Registry;

pub struct Stage {
    pub located: Located,
    pub exports: Arc<dyn ExportStore>,
    pub work: Arc<dyn WorkStore>,
    pub bus: Bus,
    pub objects: Objects,
    pub organization_id: OrganizationId,
    pub files: TempDir,
    pub registry: Registry,
    registry_url: Url,
    _neighbours: Tasks,
}

impl Stage {
    pub async fn on_sqlite() -> Result<Self> {
        Self::at(Located::sqlite().await?)
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::at(Located::postgres().await?)
    }

    fn at(located: Located) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let mut neighbours = Tasks::new(Readiness::default());
        let (registry, registry_url) = Registry::start(&mut neighbours)?;
        Ok(Self {
            exports: export_store(&located.database),
            work: work_store(&located.database, Announces::Nothing),
            located,
            bus: Bus::open(&BusSettings::new("local:".to_owned()))?,
            objects: Objects::open(&format!("file://{}", files.path().display()), [])?,
            organization_id: new_id(),
            files,
            registry,
            registry_url,
            _neighbours: neighbours,
        })
    }

    /// Settings under which nothing takes long.
    pub fn config(&self) -> Result<Config> {
        Ok(Config {
            listen: "127.0.0.1:0".parse()?,
            database_url: self.located.settings().database_url,
            database_pool_size: self.located.settings().database_pool_size,
            parallel_jobs: 2,
            lease_milliseconds: 60_000,
            poll_interval_milliseconds: 20,
            pending_grace_milliseconds: 0,
            max_attempts: 3,
            retry_delay_milliseconds: 1,
            evaluations_wait_milliseconds: 20_000,
            file_retention_days: 30,
            maintenance_interval_seconds: 1,
        })
    }

    /// A worker that runs as long as its tasks are kept.
    pub fn worker(&self, config: &Config) -> Result<Tasks> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut tasks = Tasks::new(Readiness::default());
        let (bus, objects) = (self.bus.clone(), self.objects.clone());
        let tokens = ServiceTokens::new(&"a secret of the tests of the export worker".to_owned().into())?;
        let registry_url = self.registry_url.clone();
        start(
            config,
            Dependencies { listener, bus, objects, tokens, registry_url, announces: Announces::Nothing },
            &mut tasks,
        )?;
        Ok(tasks)
    }

    pub async fn record(&self, events: &[ConversationEvaluated]) -> Result<()> {
        let rows =
            events.iter().map(|event| ReceivedRow { event_id: new_id(), row: EvaluationRow::of(event) });
        Ok(self.exports.record_rows(rows.collect(), now()).await?)
    }

    pub async fn create(&self, kind: ExportKind, filters: ExportFilters) -> Result<ExportId> {
        Ok(self.create_with_event(kind, filters).await?.0)
    }

    pub async fn create_with_event(
        &self,
        kind: ExportKind,
        filters: ExportFilters,
    ) -> Result<(ExportId, OutgoingEvent)> {
        self.create_at(now(), kind, filters).await
    }

    /// As a service does that knows of so many evaluations.
    pub async fn create_awaiting(&self, awaited_evaluations: i64) -> Result<ExportId> {
        self.create_counted(Some(awaited_evaluations)).await
    }

    /// As a service does that cannot ask.
    pub async fn create_uncounted(&self) -> Result<ExportId> {
        self.create_counted(None).await
    }

    async fn create_counted(&self, awaited_evaluations: Option<i64>) -> Result<ExportId> {
        let kind = ExportKind::Axis;
        let export = NewExport { kind, format: ExportFormat::Csv, filters: ExportFilters::default() };
        let job = Job::new(new_id(), self.organization_id, &export, now());
        let id = job.id;
        let requested = ExportRequested { organization_id: self.organization_id, export_id: id, kind };
        let event = OutgoingEvent::new(new_id(), now(), &requested)?;
        self.exports.create(Creation { job, event, record: None, awaited_evaluations }).await?;
        Ok(id)
    }

    /// As a service does whose clock shows `created_at`.
    pub async fn create_at(
        &self,
        created_at: Timestamp,
        kind: ExportKind,
        filters: ExportFilters,
    ) -> Result<(ExportId, OutgoingEvent)> {
        let organization_id = self.organization_id;
        let export = NewExport { kind, format: ExportFormat::Csv, filters };
        let job = Job::new(new_id(), organization_id, &export, created_at);
        let requested = ExportRequested { organization_id, export_id: job.id, kind };
        let event = OutgoingEvent::new(new_id(), now(), &requested)?;
        let id = job.id;
        self.exports
            .create(Creation { job, event: event.clone(), record: None, awaited_evaluations: Some(0) })
            .await?;
        Ok((id, event))
    }

    /// Takes a job as a worker would that is then never heard of again.
    pub async fn claim_and_die(&self, max_tries: u32) -> Result<Claim> {
        let terms = ClaimTerms {
            owner: new_id(),
            now: now(),
            lease_millis: -1,
            pending_before: now().plus_millis(1_000),
            max_tries,
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

    /// The file of a job, as soon as it is complete.
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
        number(
            &self.located.database,
            &format!("SELECT CAST({column} AS bigint) FROM exports WHERE id = '{id}'"),
        )
        .await
    }
}

/// Asks a worker to stop and waits until it has.
pub async fn stop(worker: Tasks) -> Result<(), TaskFailure> {
    let budgets = Budgets { per_phase: Duration::from_secs(20), drain: Duration::ZERO };
    worker.run(async {}, budgets).await
}

pub fn file_of<'e>(kind: ExportKind, events: impl IntoIterator<Item = &'e ConversationEvaluated>) -> String {
    let lines = events.into_iter().map(|event| render(kind, event) + "\r\n");
    std::iter::once(header(kind)).chain(lines).collect()
}
