//! A running role on a fresh database, with a client.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_agent_registry::keys::{CreateKey, KeyName, OrganizationName, create, list};
use assay_agent_registry::{Config, Dependencies, MIGRATIONS, SCHEMA, start};
use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::internal::{ResolveKey, ResolvedKey};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{ApiKey, Audience, ServiceClaims, ServiceTokens};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{Readiness, Tasks, now};
use assay_testkit::{ServiceDatabase, random_name};
use reqwest::{Client, Method, RequestBuilder, Response};

pub const DEADLINE: Duration = Duration::from_secs(15);

pub struct TestApp {
    pub database: Database,
    pub bus: Bus,
    pub tasks: Tasks,
    pub tokens: ServiceTokens,
    pub http: Client,
    pub address: String,
    _service_database: ServiceDatabase,
}

/// An organization with its key.
pub struct Credentials {
    pub organization_id: OrganizationId,
    pub key_id: ApiKeyId,
    pub key: ApiKey,
}

impl TestApp {
    pub async fn on_sqlite() -> Result<Self> {
        let service_database = ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?;
        Self::run(service_database.settings(), service_database, None)
    }

    pub async fn on_postgres() -> Result<Self> {
        let service_database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
        Self::run(service_database.settings(), service_database, None)
    }

    pub fn run(
        settings: DatabaseSettings,
        service_database: ServiceDatabase,
        bootstrap: Option<(ApiKey, String)>,
    ) -> Result<Self> {
        let tokens = tokens()?;
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let database = Database::open(&settings, SCHEMA)?;
        let mut tasks = Tasks::new(Readiness::default());
        let dependencies = Dependencies { listener, tokens: tokens.clone(), bus: bus.clone(), bootstrap };
        start(&config(settings)?, dependencies, &mut tasks)?;
        let http = client_builder().no_proxy().timeout(DEADLINE).build()?;
        Ok(Self { database, bus, tasks, tokens, http, address, _service_database: service_database })
    }

    /// A new organization and its key, which has the default scopes: all but `console` and `admin`.
    pub async fn new_credentials(&self) -> Result<Credentials> {
        self.create_credentials(&random_name("organization")?).await
    }

    /// A new key of an organization, which is created with its first key.
    pub async fn create_credentials(&self, organization: &str) -> Result<Credentials> {
        let created = create(&self.database, new_key(organization)?).await?;
        let grant = self.resolve(&created.key).await?.grant.context("the new key is unknown")?;
        Ok(Credentials { organization_id: grant.organization_id, key_id: created.id, key: created.key })
    }

    pub async fn resolve(&self, key: &ApiKey) -> Result<ResolvedKey> {
        let body = serde_json::to_string(&ResolveKey { key_sha256: key.hash().to_string() })?;
        let response = self.post("/internal/v1/keys/resolve", &ServiceClaims::Service, body).await?;
        Ok(response.error_for_status()?.json().await?)
    }

    fn token(&self, claims: &ServiceClaims) -> Result<String> {
        Ok(self.tokens.issue(Audience::AgentRegistry, claims, now())?)
    }

    fn request(&self, method: Method, path: &str, claims: &ServiceClaims) -> Result<RequestBuilder> {
        Ok(self.http.request(method, format!("{}{path}", self.address)).bearer_auth(self.token(claims)?))
    }

    pub async fn get(&self, path: &str, claims: &ServiceClaims) -> Result<Response> {
        Ok(self.request(Method::GET, path, claims)?.send().await?)
    }

    pub async fn delete(&self, path: &str, claims: &ServiceClaims) -> Result<Response> {
        Ok(self.request(Method::DELETE, path, claims)?.send().await?)
    }

    pub async fn post(&self, path: &str, claims: &ServiceClaims, body: String) -> Result<Response> {
        let request = self.request(Method::POST, path, claims)?.header("content-type", "application/json");
        Ok(request.body(body).send().await?)
    }

    pub async fn create_agent(&self, credentials: &Credentials, body: &str) -> Result<Response> {
        self.post("/internal/v1/agents", &claims_of(credentials, Scope::Agents), body.to_owned()).await
    }

    pub async fn create_agent_idempotently(
        &self,
        credentials: &Credentials,
        idempotency_key: &str,
        body: &str,
    ) -> Result<Response> {
        let claims = claims_of(credentials, Scope::Agents);
        let request = self.request(Method::POST, "/internal/v1/agents", &claims)?;
        let request = request.header("Idempotency-Key", idempotency_key);
        Ok(request.header("content-type", "application/json").body(body.to_owned()).send().await?)
    }

    pub async fn has_recorded_use(&self, id: ApiKeyId) -> Result<bool> {
        let keys = list(&self.database, None).await?;
        Ok(keys.iter().any(|key| key.id == id && key.last_used_at.is_some()))
    }
}

pub fn new_key(organization: &str) -> Result<CreateKey> {
    Ok(CreateKey {
        organization: OrganizationName::parse(organization)?,
        name: KeyName::parse("test")?,
        scopes: Scopes::default_for_keys(),
        expires_at: None,
    })
}

pub fn claims_of(credentials: &Credentials, scope: Scope) -> ServiceClaims {
    ServiceClaims::Tenant(Tenant {
        organization_id: credentials.organization_id,
        scopes: Scopes::from_iter([scope]),
    })
}

pub fn tokens() -> Result<ServiceTokens> {
    Ok(ServiceTokens::new(&"a secret of the tests of agent-registry".to_owned().into())?)
}

fn config(settings: DatabaseSettings) -> Result<Config> {
    let DatabaseSettings { database_url, database_pool_size } = settings;
    let listen = "127.0.0.1:0".parse()?;
    Ok(Config {
        listen,
        database_url,
        database_pool_size,
        outbox_age_limit_seconds: 60,
        transcript_retention_days: 0,
        evaluation_retention_days: 365,
        console_idle_minutes: 60,
        console_session_hours: 24,
    })
}
