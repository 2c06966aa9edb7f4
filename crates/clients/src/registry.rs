//! Calls to agent-registry.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::{
    FindAgents, FoundAgents, KeyGrant, OrganizationRetention, ResolveKey, ResolvedKey, RetentionPage,
};
use assay_contracts::tenant::{Scopes, Tenant};
use assay_platform::auth::{ApiKeyHash, ServiceClaims};

use super::{ClientError, ServiceClient};

/// Client of agent-registry.
#[derive(Clone)]
pub struct RegistryClient {
    service: ServiceClient,
}

impl RegistryClient {
    /// Wraps `service`, whose audience must be agent-registry.
    pub fn new(service: ServiceClient) -> Self {
        Self { service }
    }

    /// The underlying client.
    pub fn service(&self) -> &ServiceClient {
        &self.service
    }

    /// The grant of a key; `None` when it is unknown, expired or revoked.
    ///
    /// # Errors
    /// When the registry is unreachable or responds with an error.
    pub async fn resolve_key(&self, hash: &ApiKeyHash) -> Result<Option<KeyGrant>, ClientError> {
        let body = ResolveKey { key_sha256: hash.to_string() };
        let response: ResolvedKey =
            self.service.post_json(&ServiceClaims::Service, "/internal/v1/keys/resolve", &body).await?;
        Ok(response.grant)
    }

    /// Retention periods of all organizations, read page by page.
    ///
    /// # Errors
    /// When the registry is unreachable or responds with an error: there is no partial result.
    pub async fn retention(&self) -> Result<Vec<OrganizationRetention>, ClientError> {
        let (mut organizations, mut path) = (Vec::new(), "/internal/v1/retention".to_owned());
        loop {
            let page: RetentionPage = self.service.get_json(&ServiceClaims::Service, &path).await?;
            organizations.extend(page.organizations);
            let Some(next) = page.next else { return Ok(organizations) };
            path = format!("/internal/v1/retention?after={next}");
        }
    }

    /// Looks up agents of an organization.
    ///
    /// # Errors
    /// When the registry is unreachable or responds with an error.
    pub async fn find_agents(
        &self,
        organization_id: OrganizationId,
        agents: &FindAgents,
    ) -> Result<FoundAgents, ClientError> {
        let tenant = Tenant { organization_id, scopes: Scopes::from_iter([]) };
        self.service.post_json(&ServiceClaims::Tenant(tenant), "/internal/v1/agents/find", agents).await
    }
}
