//! The running role on the database of a [`Fixture`].

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Result;
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{Readiness, Tasks, now};
use assay_webhooks::{Config, Dependencies, start};
use reqwest::{Client, Response};

use crate::fixture::Fixture;

/// Low: the quota gains a message only every 15 seconds.
pub const REQUESTED_MESSAGES_PER_MINUTE: u32 = 4;
pub const CONCURRENCY_PER_ORGANIZATION: usize = 16;

pub struct RunningRole {
    pub fixture: Fixture,
    http: Client,
    tokens: ServiceTokens,
    address: String,
    _tasks: Tasks,
}

impl RunningRole {
    pub async fn on_sqlite() -> Result<Self> {
        Self::on(Fixture::on_sqlite().await?)
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::on(Fixture::on_postgres().await?)
    }

    fn on(fixture: Fixture) -> Result<Self> {
        let tokens = ServiceTokens::new(&"a secret of the tests of the role webhooks".to_owned().into())?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}/internal/v1/webhooks", listener.local_addr()?);
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let mut tasks = Tasks::new(Readiness::default());
        let signing_keys = fixture.keys.clone();
        let dependencies = Dependencies { listener, tokens: tokens.clone(), signing_keys, bus };
        start(&config(&fixture)?, dependencies, &mut tasks)?;
        let http = client_builder().no_proxy().timeout(Duration::from_secs(20)).build()?;
        Ok(Self { fixture, http, tokens, address, _tasks: tasks })
    }

    /// Sends a POST request as the organization of the fixture.
    pub async fn post(&self, path: &str, body: String) -> Result<Response> {
        let scopes = Scopes::from_iter([Scope::Webhooks]);
        let claims = ServiceClaims::Tenant(Tenant { organization_id: self.fixture.organization_id, scopes });
        let token = self.tokens.issue(Audience::Webhooks, &claims, now())?;
        let request = self.http.post(format!("{}{path}", self.address)).bearer_auth(token);
        Ok(request.header("content-type", "application/json").body(body).send().await?)
    }
}

/// Settings with short intervals that allow endpoints on this machine.
fn config(fixture: &Fixture) -> Result<Config> {
    Ok(Config {
        listen: "127.0.0.1:0".parse()?,
        database_url: fixture.service_database.settings().database_url,
        database_pool_size: 6,
        allow_http: true,
        allowed_networks: "127.0.0.0/8".to_owned(),
        endpoints_per_organization: 20,
        retry_schedule_seconds: "0,5,300".to_owned(),
        attempt_deadline_milliseconds: 20_000,
        concurrency: 64,
        concurrency_per_endpoint: 8,
        concurrency_per_organization: CONCURRENCY_PER_ORGANIZATION,
        requested_messages_per_minute: REQUESTED_MESSAGES_PER_MINUTE,
        poll_interval_milliseconds: 200,
        previous_secret_seconds: 60,
        disable_after_days: 5,
        delivery_retention_days: 30,
        maintenance_interval_seconds: 3_600,
    })
}
