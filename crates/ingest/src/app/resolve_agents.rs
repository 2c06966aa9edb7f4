//! Resolves the AI authors of a conversation through agent-registry, with a cache.
//!
//! Only existing agents are cached: one that is created after a conversation was rejected is usable at once. Agents are
//! neither renamed nor removed, so cache entries never become stale.

use std::collections::HashMap;

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::agent::AgentFacts;
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::FindAgents;
use quick_cache::sync::Cache;

use crate::domain::AgentReference;

/// Agents of all organizations, cached by id and by external id.
pub struct AgentDirectory {
    registry: RegistryClient,
    cache: Cache<(OrganizationId, AgentReference), AgentFacts>,
}

impl AgentDirectory {
    /// A directory that caches at most `entries` ids.
    pub fn new(registry: RegistryClient, entries: usize) -> Self {
        Self { registry, cache: Cache::new(entries.max(1)) }
    }

    /// The existing agents among `wanted`.
    ///
    /// # Errors
    /// When one is not cached and agent-registry is unavailable.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        wanted: impl IntoIterator<Item = AgentReference>,
    ) -> Result<HashMap<AgentReference, AgentFacts>, ClientError> {
        let mut found = HashMap::new();
        let mut missing = FindAgents { ids: Vec::new(), external_ids: Vec::new() };
        for reference in wanted {
            let key = (organization_id, reference);
            match (self.cache.get(&key), key.1) {
                (Some(agent), reference) => {
                    found.insert(reference, agent);
                }
                (None, AgentReference::Id(id)) => missing.ids.push(id.to_string()),
                (None, AgentReference::ExternalId(id)) => missing.external_ids.push(id),
            }
        }
        if missing.ids.is_empty() && missing.external_ids.is_empty() {
            return Ok(found);
        }
        for agent in self.registry.find_agents(organization_id, &missing).await?.agents {
            for reference in
                [AgentReference::Id(agent.id), AgentReference::ExternalId(agent.external_id.clone())]
            {
                self.cache.insert((organization_id, reference.clone()), agent.clone());
                found.insert(reference, agent.clone());
            }
        }
        Ok(found)
    }
}
