//! Keys, agents and sessions of the organization.

use std::fmt::Display;

use assay_clients::ClientError;
use assay_contracts::agent::{Agent, NewAgent};
use assay_contracts::console::{
    AgentList, KeyEntry, KeyList, NewKey, NewKeyRequest, SessionEntry, SessionList,
};
use assay_contracts::ids::{AgentId, ApiKeyId, SessionId};
use assay_platform::auth::ServiceClaims;
use reqwest::Method;

use super::services::{Services, send_without_body};

const KEYS: &str = "/internal/v1/keys";
const AGENTS: &str = "/internal/v1/agents";
const SESSIONS: &str = "/internal/v1/console/sessions";

/// At most a thousand keys, newest first; with `before` those that were created before this one.
pub(crate) async fn list_keys(
    services: &Services,
    claims: &ServiceClaims,
    before: Option<ApiKeyId>,
) -> Result<Vec<KeyEntry>, ClientError> {
    Ok(services.registry.get_json::<KeyList>(claims, &page_before(KEYS, before)).await?.keys)
}

pub(crate) async fn create_key(
    services: &Services,
    claims: &ServiceClaims,
    new: &NewKeyRequest,
) -> Result<NewKey, ClientError> {
    services.registry.post_json(claims, KEYS, new).await
}

pub(crate) async fn revoke_key(
    services: &Services,
    claims: &ServiceClaims,
    id: ApiKeyId,
) -> Result<(), ClientError> {
    send_without_body(&services.registry, claims, Method::DELETE, &format!("{KEYS}/{id}")).await
}

/// The newest thousand agents.
pub(crate) async fn list_agents(
    services: &Services,
    claims: &ServiceClaims,
) -> Result<Vec<Agent>, ClientError> {
    Ok(list_agents_before(services, claims, None).await?.agents)
}

/// The newest thousand agents, and the number of the others.
pub(crate) async fn list_and_count_agents(
    services: &Services,
    claims: &ServiceClaims,
) -> Result<(Vec<Agent>, usize), ClientError> {
    let AgentList { agents, total } = list_agents_before(services, claims, None).await?;
    let total = total.and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
    let others = total.saturating_sub(agents.len());
    Ok((agents, others))
}

/// At most a thousand agents, newest first, and the number of all; with `before` those that were registered before this one.
pub(crate) async fn list_agents_before(
    services: &Services,
    claims: &ServiceClaims,
    before: Option<AgentId>,
) -> Result<AgentList, ClientError> {
    services.registry.get_json(claims, &page_before(AGENTS, before)).await
}

pub(crate) async fn create_agent(
    services: &Services,
    claims: &ServiceClaims,
    new: &NewAgent,
) -> Result<Agent, ClientError> {
    services.registry.post_json(claims, AGENTS, new).await
}

fn page_before(path: &str, id: Option<impl Display>) -> String {
    id.map_or_else(|| path.to_owned(), |id| format!("{path}?before={id}"))
}

/// At most two hundred sessions in force, newest first; with `before` those that began before this one.
pub(crate) async fn list_sessions(
    services: &Services,
    claims: &ServiceClaims,
    before: Option<SessionId>,
) -> Result<Vec<SessionEntry>, ClientError> {
    Ok(services.registry.get_json::<SessionList>(claims, &page_before(SESSIONS, before)).await?.sessions)
}
