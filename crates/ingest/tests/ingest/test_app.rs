//! The running role on a new SQLite or PostgreSQL database, with an HTTP client.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_contracts::ids::OrganizationId;
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_ingest::{Config, Dependencies, MIGRATIONS, SCHEMA, start};
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::db::Database;
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{Readiness, Tasks, new_id, now};
use assay_testkit::ServiceDatabase;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use url::Url;

use crate::registry::FakeRegistry;

pub const DEADLINE: Duration = Duration::from_secs(20);

pub struct TestApp {
    pub config: Config,
    pub database: Database,
    pub registry: FakeRegistry,
    pub bus: Bus,
    pub tasks: Tasks,
    pub tokens: ServiceTokens,
    pub http: Client,
    pub address: String,
    /// The default tenant of requests.
    pub organization: OrganizationId,
    registry_url: Url,
    _service_database: ServiceDatabase,
}

impl TestApp {
    pub async fn on_sqlite() -> Result<Self> {
        let service_database = ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?;
        Self::run(config(&service_database)?, service_database)
    }

    pub async fn on_postgres() -> Result<Self> {
        let service_database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
        Self::run(config(&service_database)?, service_database)
    }

    pub fn run(config: Config, service_database: ServiceDatabase) -> Result<Self> {
        let tokens = ServiceTokens::new(&"a secret of the tests of the role ingest".to_owned().into())?;
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let mut tasks = Tasks::new(Readiness::default());
        let (registry, registry_url) = FakeRegistry::start(tokens.clone(), &mut tasks)?;
        let address = start_role(&config, &tokens, &bus, &registry_url, &mut tasks)?;
        let database = Database::open(&config.database(), SCHEMA)?;
        let http = client_builder().no_proxy().timeout(DEADLINE).build()?;
        let organization = new_id();
        Ok(Self {
            config,
            database,
            registry,
            bus,
            tasks,
            tokens,
            http,
            address,
            organization,
            registry_url,
            _service_database: service_database,
        })
    }

    /// Restarts the role with other settings on the same database.
    pub fn restarted(self, change: impl FnOnce(&mut Config)) -> Result<Self> {
        let Self { mut config, _service_database: service_database, tasks, .. } = self;
        // Its tasks end when they are dropped.
        drop(tasks);
        change(&mut config);
        Self::run(config, service_database)
    }

    /// Status and body of `/readyz`.
    pub async fn readiness(&self) -> Result<(u16, Value)> {
        let answer = self.http.get(format!("{}/readyz", self.address)).send().await?;
        Ok((answer.status().as_u16(), answer.json().await?))
    }

    /// Submits a conversation with this ticket id.
    pub async fn submit_ticket(&self, ticket_id: String) -> Result<Response> {
        self.submit(&conversation(&ticket_id)).await
    }

    /// Starts another instance on the same database; returns its address.
    pub fn start_replica(&mut self) -> Result<String> {
        start_role(&self.config, &self.tokens, &self.bus, &self.registry_url, &mut self.tasks)
    }

    pub fn claims(&self, scope: Scope) -> ServiceClaims {
        claims_for(self.organization, scope)
    }

    /// Submits a conversation for the app's organization.
    pub async fn submit(&self, body: &Value) -> Result<Response> {
        self.submit_to(&self.address, self.organization, None, body.to_string()).await
    }

    pub async fn submit_with_key(&self, key: &str, body: &Value) -> Result<Response> {
        self.submit_to(&self.address, self.organization, Some(key), body.to_string()).await
    }

    pub async fn submit_to(
        &self,
        address: &str,
        organization: OrganizationId,
        key: Option<&str>,
        body: String,
    ) -> Result<Response> {
        let token = self.tokens.issue(Audience::Ingest, &claims_for(organization, Scope::Assess), now())?;
        let mut request = self.http.post(format!("{address}/internal/v1/conversations")).bearer_auth(token);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        Ok(request.header("content-type", "application/json").body(body).send().await?)
    }

    /// Submits a conversation that must be accepted; returns its ticket id.
    pub async fn import(&self, body: &Value) -> Result<String> {
        let response = self.submit(body).await?;
        let status = response.status();
        let answer: Value = response.json().await?;
        anyhow::ensure!(status == 202, "{status}: {answer}");
        answer["id"].as_str().map(str::to_owned).context("no id")
    }

    /// Whether an import with this ticket id is accepted now or was before: a retry of one that was committed after its
    /// deadline is a duplicate.
    pub async fn is_accepted(&self, ticket_id: &str) -> Result<bool> {
        Ok([202, 409].contains(&self.submit(&conversation(ticket_id)).await?.status().as_u16()))
    }

    pub async fn get(&self, path: &str, claims: &ServiceClaims) -> Result<Response> {
        let token = self.tokens.issue(Audience::Ingest, claims, now())?;
        Ok(self.http.get(format!("{}{path}", self.address)).bearer_auth(token).send().await?)
    }

    pub async fn post(&self, path: &str, claims: &ServiceClaims, body: String) -> Result<Response> {
        let token = self.tokens.issue(Audience::Ingest, claims, now())?;
        let request = self.http.post(format!("{}{path}", self.address)).bearer_auth(token);
        Ok(request.header("content-type", "application/json").body(body).send().await?)
    }

    pub async fn ticket(&self, id: &str) -> Result<Response> {
        self.get(&format!("/internal/v1/tickets/{id}"), &self.claims(Scope::Tickets)).await
    }
}

pub fn claims_for(organization_id: OrganizationId, scope: Scope) -> ServiceClaims {
    ServiceClaims::Tenant(Tenant { organization_id, scopes: Scopes::from_iter([scope]) })
}

/// A conversation of one customer message.
pub fn conversation(ticket_id: &str) -> Value {
    conversation_of(ticket_id, json!([message("1", 1_000, json!({"type": "contact", "external_id": "c"}))]))
}

pub fn conversation_of(ticket_id: &str, messages: Value) -> Value {
    json!({"ticket_id": ticket_id, "messages": messages})
}

pub fn message(external_id: &str, timestamp: i64, author: Value) -> Value {
    json!({"external_id": external_id, "timestamp": timestamp, "content": "Hello", "author": author})
}

pub fn config(service_database: &ServiceDatabase) -> Result<Config> {
    let database_url = service_database.settings().database_url;
    Ok(Config {
        listen: "127.0.0.1:0".parse()?,
        database_url,
        database_pool_size: 6,
        accept_queue: 256,
        writers: 2,
        linger_milliseconds: 2,
        accept_deadline_milliseconds: 10_000,
        registry_deadline_milliseconds: 5_000,
        agent_cache_entries: 100,
        max_body_bytes: 1024 * 1024,
        body_memory_bytes: 64 * 1024 * 1024,
        outbox_age_limit_seconds: 60,
        maintenance_interval_seconds: 1,
        outbox_refusal_age_seconds: 3_600,
        outbox_refusal_events: 100_000,
    })
}

fn start_role(
    config: &Config,
    tokens: &ServiceTokens,
    bus: &Bus,
    registry_url: &Url,
    tasks: &mut Tasks,
) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let (tokens, bus, registry_url) = (tokens.clone(), bus.clone(), registry_url.clone());
    start(config, Dependencies { listener, tokens, bus, registry_url }, tasks)?;
    Ok(address)
}
