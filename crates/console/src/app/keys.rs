//! Keys, agents and sessions of the organization.

use assay_clients::ClientError;
use assay_contracts::agent::Agent;
use assay_contracts::console::{
    AgentList, KeyEntry, KeyList, NewKey, NewKeyRequest, SessionEntry, SessionList,
};
use assay_contracts::ids::ApiKeyId;
use assay_platform::auth::ServiceClaims;
use reqwest::Method;

use super::services::{Services, get, send, send_without_body};

const KEYS: &str = "/internal/v1/keys";

pub(crate) async fn list_keys(
    services: &Services,
    claims: &ServiceClaims,
) -> Result<Vec<KeyEntry>, ClientError> {
    Ok(get::<KeyList>(&services.registry, claims, KEYS).await?.keys)
}

pub(crate) async fn create_key(
    services: &Services,
    claims: &ServiceClaims,
    new: &NewKeyRequest,
) -> Result<NewKey, ClientError> {
    send(&services.registry, claims, Method::POST, KEYS, new).await
}

pub(crate) async fn revoke_key(
    services: &Services,
    claims: &ServiceClaims,
    id: ApiKeyId,
) -> Result<(), ClientError> {
    send_without_body(&services.registry, claims, Method::DELETE, &format!("{KEYS}/{id}")).await
}

pub(crate) async fn list_agents(
    services: &Services,
    claims: &ServiceClaims,
) -> Result<Vec<Agent>, ClientError> {
    Ok(get::<AgentList>(&services.registry, claims, "/internal/v1/agents").await?.agents)
}

pub(crate) async fn list_sessions(
    services: &Services,
    claims: &ServiceClaims,
) -> Result<Vec<SessionEntry>, ClientError> {
    Ok(get::<SessionList>(&services.registry, claims, "/internal/v1/console/sessions").await?.sessions)
}
