//! A fake agent-registry: an HTTP server with the agents and retention periods that tests set.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use actix_web::middleware::from_fn;
use actix_web::web::{Data, Json, get, post};
use anyhow::{Result, anyhow};
use assay_contracts::agent::AgentFacts;
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::{FindAgents, FoundAgents, OrganizationRetention, RetentionPage};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::runtime::{LockExt as _, Phase, Tasks, new_id};
use assay_platform::web::{
    Caller, ServerSettings, ServiceAuth, WebError, resource, serve, service_auth_middleware,
};
use assay_testkit::eventually;
use url::Url;

#[derive(Clone, Default)]
pub struct FakeRegistry {
    agents: Arc<Mutex<Vec<(OrganizationId, AgentFacts)>>>,
    agent_calls: Arc<AtomicUsize>,
    unavailable: Arc<AtomicBool>,
    /// `None`: the registry answers 503.
    retention: Arc<Mutex<Option<Vec<OrganizationRetention>>>>,
    retention_calls: Arc<AtomicUsize>,
}

impl FakeRegistry {
    /// Starts the server as one of `tasks`.
    pub fn start(tokens: ServiceTokens, tasks: &mut Tasks) -> Result<(Self, Url)> {
        let registry = Self::default();
        registry.set_retention(Some(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let data = Data::new(registry.clone());
        let auth = Data::new(ServiceAuth { tokens, audience: Audience::AgentRegistry });
        serve(
            tasks,
            Phase::ServeInternal,
            "test registry",
            listener,
            ServerSettings::default(),
            move |app| {
                app.app_data(data.clone()).app_data(auth.clone()).service(
                    resource("/internal/v1/agents/find", vec![("POST", post().to(find))])
                        .wrap(from_fn(service_auth_middleware)),
                );
                app.service(
                    resource("/internal/v1/retention", vec![("GET", get().to(retention))])
                        .wrap(from_fn(service_auth_middleware)),
                );
            },
        )?;
        Ok((registry, url))
    }

    pub fn register(&self, organization_id: OrganizationId, external_id: &str) -> Result<AgentFacts> {
        let name = format!("Agent {external_id}");
        let agent = AgentFacts { id: new_id(), external_id: external_id.to_owned(), name };
        let mut agents = self.agents.lock().map_err(|_| anyhow!("a test panicked"))?;
        agents.push((organization_id, agent.clone()));
        Ok(agent)
    }

    /// Sets the retention periods; `None`: the registry answers 503.
    pub fn set_retention(&self, retention: Option<Vec<OrganizationRetention>>) {
        *self.retention.locked() = retention;
    }

    /// Waits until a maintenance run that read the retention periods after this call has ended; runs do not overlap.
    pub async fn wait_for_maintenance(&self) -> Result<()> {
        let calls_before = self.retention_calls.load(Ordering::SeqCst);
        let has_run = || async { Ok(self.retention_calls.load(Ordering::SeqCst) >= calls_before + 2) };
        eventually("two maintenance runs", has_run).await
    }

    /// Number of requests for agents.
    pub fn agent_calls(&self) -> usize {
        self.agent_calls.load(Ordering::SeqCst)
    }

    /// Whether requests for agents are answered with 503.
    pub fn set_unavailable(&self, unavailable: bool) {
        self.unavailable.store(unavailable, Ordering::SeqCst);
    }
}

async fn find(
    caller: Caller,
    registry: Data<FakeRegistry>,
    wanted: Json<FindAgents>,
) -> Result<Json<FoundAgents>, WebError> {
    registry.agent_calls.fetch_add(1, Ordering::SeqCst);
    if registry.unavailable.load(Ordering::SeqCst) {
        return Err(WebError::unavailable(&"unavailable for a test"));
    }
    let organization = caller.organization()?;
    let agents = registry.agents.lock().map_err(|error| WebError::internal(&error))?;
    let is_wanted = |agent: &AgentFacts| {
        wanted.ids.contains(&agent.id.to_string()) || wanted.external_ids.contains(&agent.external_id)
    };
    let found = agents.iter().filter(|(owner, agent)| *owner == organization && is_wanted(agent));
    Ok(Json(FoundAgents { agents: found.map(|(_, agent)| agent.clone()).collect() }))
}

async fn retention(caller: Caller, registry: Data<FakeRegistry>) -> Result<Json<RetentionPage>, WebError> {
    caller.require_service()?;
    registry.retention_calls.fetch_add(1, Ordering::SeqCst);
    let retention = registry.retention.locked().clone();
    let organizations = retention.ok_or_else(|| WebError::unavailable(&"unavailable for a test"))?;
    Ok(Json(RetentionPage { organizations, next: None }))
}
