//! Keys, agents and sessions of the organization, which agent-registry keeps.

use std::fmt::Display;

use assay_clients::ClientError;
use assay_contracts::agent::{Agent, NewAgent};
use assay_contracts::console::{
    AgentList, KeyEntry, KeyList, NewKey, NewKeyRequest, SessionEntry, SessionList,
};
use assay_contracts::ids::{AgentId, ApiKeyId, SessionId};
use reqwest::Method;

use super::services::{OrganizationServices, send_without_body};

const KEYS: &str = "/internal/v1/keys";
const AGENTS: &str = "/internal/v1/agents";
const SESSIONS: &str = "/internal/v1/console/sessions";

impl OrganizationServices<'_> {
    /// At most a thousand keys, newest first; with `before` those that were created before this one.
    pub(crate) async fn list_keys(self, before: Option<ApiKeyId>) -> Result<Vec<KeyEntry>, ClientError> {
        let path = page_before(KEYS, before);
        Ok(self.services.registry.get_json::<KeyList>(self.claims, &path).await?.keys)
    }

    pub(crate) async fn create_key(self, new: &NewKeyRequest) -> Result<NewKey, ClientError> {
        self.services.registry.post_json(self.claims, KEYS, new).await
    }

    pub(crate) async fn revoke_key(self, id: ApiKeyId) -> Result<(), ClientError> {
        let path = format!("{KEYS}/{id}");
        send_without_body(&self.services.registry, self.claims, Method::DELETE, &path).await
    }

    /// The newest thousand agents.
    pub(crate) async fn list_agents(self) -> Result<Vec<Agent>, ClientError> {
        Ok(self.list_agents_before(None).await?.agents)
    }

    /// The newest thousand agents, and the number of the others.
    pub(crate) async fn list_agents_and_count_others(self) -> Result<(Vec<Agent>, usize), ClientError> {
        let AgentList { agents, total } = self.list_agents_before(None).await?;
        let total = total.and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
        let others = total.saturating_sub(agents.len());
        Ok((agents, others))
    }

    /// At most a thousand agents, newest first, and the number of all; with `before` those that were registered before this one.
    pub(crate) async fn list_agents_before(self, before: Option<AgentId>) -> Result<AgentList, ClientError> {
        self.services.registry.get_json(self.claims, &page_before(AGENTS, before)).await
    }

    pub(crate) async fn create_agent(self, new: &NewAgent) -> Result<Agent, ClientError> {
        self.services.registry.post_json(self.claims, AGENTS, new).await
    }

    /// At most two hundred active sessions, newest first; with `before` those that began before this one.
    pub(crate) async fn list_sessions(
        self,
        before: Option<SessionId>,
    ) -> Result<Vec<SessionEntry>, ClientError> {
        let path = page_before(SESSIONS, before);
        Ok(self.services.registry.get_json::<SessionList>(self.claims, &path).await?.sessions)
    }

    pub(crate) async fn end_session(self, id: SessionId) -> Result<(), ClientError> {
        let path = format!("{SESSIONS}/{id}");
        send_without_body(&self.services.registry, self.claims, Method::DELETE, &path).await
    }
}

fn page_before(path: &str, id: Option<impl Display>) -> String {
    id.map_or_else(|| path.to_owned(), |id| format!("{path}?before={id}"))
}
