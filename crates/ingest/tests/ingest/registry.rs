//! The agent-registry of the tests: a real server that knows the agents it is told.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use actix_web::middleware::from_fn;
use actix_web::web::{Data, Json, get, post};
use anyhow::{Result, anyhow};
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::{FindAgents, FoundAgents, OrganizationRetention, RetentionPage};
use assay_platform::auth::{Audience, ServiceTokens};
use assay_platform::runtime::{Phase, Tasks, new_id};
use assay_platform::web::{
    Caller, ServerSettings, ServiceAuth, WebError, resource, serve, service_auth_middleware,
};
use assay_testkit::eventually;
use url::Url;

#[derive(Clone, Default)]
pub struct Registry {
    agents: Arc<Mutex<Vec<(OrganizationId, AgentFacts)>>>,
    calls: Arc<AtomicUsize>,
    away: Arc<AtomicBool>,
    /// What it says of periods, or nothing: then it cannot say.
    periods: Arc<Mutex<Option<Vec<OrganizationRetention>>>>,
    rounds: Arc<AtomicUsize>,
}

impl Registry {
    /// Starts it as one of `tasks`.
    pub fn start(tokens: ServiceTokens, tasks: &mut Tasks) -> Result<(Self, Url)> {
        let registry = Self::default();
        registry.tell_periods(Some(Vec::new()));
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

    /// What it says of periods from now on.
    pub fn tell_periods(&self, periods: Option<Vec<OrganizationRetention>>) {
        *self.periods.lock().unwrap_or_else(PoisonError::into_inner) = periods;
    }

    /// Waits until a round of housekeeping that began after this call has ended: rounds follow each other.
    pub async fn after_a_round(&self) -> Result<()> {
        let rounds = self.rounds.load(Ordering::SeqCst);
        let asked = || async { Ok(self.rounds.load(Ordering::SeqCst) >= rounds + 2) };
        eventually("two rounds of housekeeping", asked).await
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// From now on it answers 503, or again as it should.
    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }
}

async fn find(
    caller: Caller,
    registry: Data<Registry>,
    wanted: Json<FindAgents>,
) -> Result<Json<FoundAgents>, WebError> {
    registry.calls.fetch_add(1, Ordering::SeqCst);
    if registry.away.load(Ordering::SeqCst) {
        return Err(WebError::unavailable(&"away for a test"));
    }
    let organization = caller.organization()?;
    let agents = registry.agents.lock().map_err(|error| WebError::internal(&error))?;
    let is_wanted = |agent: &AgentFacts| {
        wanted.ids.contains(&agent.id.to_string()) || wanted.external_ids.contains(&agent.external_id)
    };
    let found = agents.iter().filter(|(of, agent)| *of == organization && is_wanted(agent));
    Ok(Json(FoundAgents { agents: found.map(|(_, agent)| agent.clone()).collect() }))
}

async fn retention(caller: Caller, registry: Data<Registry>) -> Result<Json<RetentionPage>, WebError> {
    caller.require_service()?;
    registry.rounds.fetch_add(1, Ordering::SeqCst);
    let periods = registry.periods.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let organizations = periods.ok_or_else(|| WebError::unavailable(&"away for a test"))?;
    Ok(Json(RetentionPage { organizations, next: None }))
}
