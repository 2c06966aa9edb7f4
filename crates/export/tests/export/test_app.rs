//! The running role on a fresh database.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use assay_contracts::export::Export;
use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_contracts::problem::Problem;
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_contracts::time::Timestamp;
use assay_export::domain::lease::{Claim, ClaimTerms, FinishedFile};
use assay_export::store::{ExportStore, Notifications, WorkStore, export_store, work_store};
use assay_export::{Config, Dependencies, start};
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{Audience, KeyRing, ServiceClaims, ServiceTokens};
use assay_platform::http_client::client_builder;
use assay_platform::objects::Objects;
use assay_platform::runtime::{Readiness, Tasks, new_id, now};
use reqwest::{Client, Method, RequestBuilder, Response};
use tempfile::TempDir;

use crate::registry::Registry;
use crate::test_database::TestDatabase;

pub const DEADLINE: Duration = Duration::from_secs(30);

pub const PUBLIC_BASE: &str = "https://assay.example";

pub struct TestApp {
    pub test_database: TestDatabase,
    pub exports: ExportStore,
    pub work: WorkStore,
    pub bus: Bus,
    pub keys: KeyRing,
    pub objects: Objects,
    pub tokens: ServiceTokens,
    pub http: Client,
    pub address: String,
    pub registry: Registry,
    _tasks: Tasks,
    _files: TempDir,
}

/// A database and files before the role starts.
pub struct PreparedDatabase {
    pub test_database: TestDatabase,
    pub objects: Objects,
    files: TempDir,
}

impl PreparedDatabase {
    pub async fn on_sqlite() -> Result<Self> {
        Self::at(TestDatabase::sqlite().await?)
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::at(TestDatabase::postgres().await?)
    }

    /// The folder of the object store.
    pub fn folder(&self) -> &std::path::Path {
        self.files.path()
    }

    fn at(test_database: TestDatabase) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let objects = Objects::open(&format!("file://{}", files.path().display()), [])?;
        Ok(Self { test_database, objects, files })
    }

    pub fn start(self) -> Result<TestApp> {
        self.start_with(|_| ())
    }

    pub fn start_with(self, change: impl FnOnce(&mut Config)) -> Result<TestApp> {
        let Self { test_database, objects, files } = self;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let tokens = ServiceTokens::new(&"a secret of the tests of the export role".to_owned().into())?;
        let keys = KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into())?;
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let mut tasks = Tasks::new(Readiness::default());
        let (registry, registry_url) = Registry::start(&mut tasks)?;
        let dependencies = Dependencies {
            listener,
            tokens: tokens.clone(),
            signing_keys: keys.clone(),
            bus: bus.clone(),
            objects: objects.clone(),
            // Unreachable: exports are created without a target sequence.
            scoring_url: "http://127.0.0.1:1".parse()?,
            registry_url,
        };
        let mut config = config(&test_database)?;
        change(&mut config);
        start(&config, dependencies, &mut tasks)?;
        let (exports, work) =
            (export_store(&test_database.database), work_store(&test_database.database, Notifications::Off));
        // Redirects would hide the response of the role.
        let http = client_builder()
            .no_proxy()
            .timeout(DEADLINE)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(TestApp {
            test_database,
            exports,
            work,
            bus,
            keys,
            objects,
            tokens,
            http,
            address,
            registry,
            _tasks: tasks,
            _files: files,
        })
    }
}

fn config(test_database: &TestDatabase) -> Result<Config> {
    Ok(Config {
        listen: "127.0.0.1:0".parse()?,
        database_url: test_database.settings().database_url,
        database_pool_size: test_database.settings().database_pool_size,
        batch_size: 16,
        max_in_flight: 64,
        outbox_age_limit_seconds: 60,
        max_open_exports: 1_000,
        max_downloads_per_export: 8,
        max_downloads: 64,
        response_stall_seconds: 60,
        day_cache_bytes: 1 << 20,
        maintenance_interval_seconds: 1,
    })
}

pub fn claims(organization_id: OrganizationId, scope: Scope) -> ServiceClaims {
    ServiceClaims::Tenant(Tenant { organization_id, scopes: Scopes::from_iter([scope]) })
}

impl TestApp {
    pub async fn on_sqlite() -> Result<Self> {
        PreparedDatabase::on_sqlite().await?.start()
    }

    pub async fn on_postgres() -> Result<Self> {
        PreparedDatabase::on_postgres().await?.start()
    }

    pub fn request(&self, method: Method, path: &str, claims: &ServiceClaims) -> Result<RequestBuilder> {
        let token = self.tokens.issue(Audience::Export, claims, now())?;
        let request = self.http.request(method, format!("{}/internal/v1/exports{path}", self.address));
        Ok(request.bearer_auth(token).header(PUBLIC_BASE_URL_HEADER, PUBLIC_BASE))
    }

    pub async fn get(&self, organization_id: OrganizationId, path: &str) -> Result<Response> {
        let claims = claims(organization_id, Scope::Exports);
        Ok(self.request(Method::GET, path, &claims)?.send().await?)
    }

    pub async fn post(
        &self,
        organization_id: OrganizationId,
        body: &str,
        idempotency_key: Option<&str>,
    ) -> Result<Response> {
        let claims = claims(organization_id, Scope::Exports);
        let mut request = self.request(Method::POST, "", &claims)?.header("content-type", "application/json");
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        Ok(request.body(body.to_owned()).send().await?)
    }

    pub async fn create(&self, organization_id: OrganizationId) -> Result<Export> {
        let response = self.post(organization_id, r#"{"kind":"axis"}"#, None).await?;
        ensure!(response.status() == 201, "{}", response.text().await?);
        Ok(response.json().await?)
    }

    pub async fn read(&self, organization_id: OrganizationId, id: ExportId) -> Result<Export> {
        Ok(self.get(organization_id, &format!("/{id}")).await?.error_for_status()?.json().await?)
    }

    /// Acts as a worker that completes a job.
    pub async fn complete(&self, content: &[u8], expires_at: Timestamp) -> Result<()> {
        complete(&self.work, &self.objects, content, expires_at).await
    }

    /// Creates a complete export; returns its signed URL on this server.
    pub async fn create_download(&self, organization_id: OrganizationId, content: &[u8]) -> Result<String> {
        let export = self.create(organization_id).await?;
        self.complete(content, Timestamp::MAX).await?;
        let export = self.read(organization_id, export.id).await?;
        let address = export.download_url.context("no address")?;
        Ok(address.replace(PUBLIC_BASE, &self.address))
    }
}

pub async fn claim(work: &WorkStore) -> Result<Claim> {
    let terms = ClaimTerms {
        owner: new_id(),
        now: now(),
        lease_millis: 60_000,
        latest_lease_end: Timestamp::MAX,
        pending_before: now().plus_millis(1_000),
        max_attempts: 5,
        except: None,
    };
    work.claim(terms).await?.context("no job waits")
}

pub async fn complete(
    work: &WorkStore,
    objects: &Objects,
    content: &[u8],
    expires_at: Timestamp,
) -> Result<()> {
    let claim = claim(work).await?;
    let mut writer = objects.create(&claim.object_key()).await?;
    writer.write(content.to_vec().into()).await?;
    let written = writer.finish().await?;
    let file = FinishedFile {
        object_key: claim.object_key(),
        bytes: written.bytes,
        rows: 1,
        sha256: written.sha256,
        expires_at,
        missing_evaluations: Some(0),
    };
    ensure!(work.complete(&claim, file, now()).await?, "the lease was lost");
    Ok(())
}

/// Asserts an error response and returns its problem.
pub async fn problem(response: Response, status: u16, code: &str) -> Result<Problem> {
    let found = response.status().as_u16();
    let content_type = header(&response, "content-type").unwrap_or_default();
    let problem: Problem = serde_json::from_str(&response.text().await?)?;
    assert_eq!((found, problem.code.as_str()), (status, code), "{problem:?}");
    assert_eq!((problem.status, content_type.as_str()), (status, "application/problem+json"));
    Ok(problem)
}

pub fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
