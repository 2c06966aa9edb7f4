//! Asks agent-registry which agents the AI authors of a conversation are, and remembers the answers.
//!
//! Only agents that exist are remembered: one that is created after a conversation was refused is usable at once.
//! Agents are neither renamed nor removed, so what is remembered stays true.

use std::collections::HashMap;

use assay_clients::{ClientError, RegistryClient};
use assay_contracts::event::AgentFacts;
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::FindAgents;
use quick_cache::sync::Cache;

use crate::domain::AgentReference;

/// The agents of all organizations, as far as they are known here.
pub struct AgentDirectory {
    registry: RegistryClient,
    known: Cache<(OrganizationId, AgentReference), AgentFacts>,
}

impl AgentDirectory {
    /// A directory that remembers so many ids of agents.
    pub fn new(registry: RegistryClient, entries: usize) -> Self {
        Self { registry, known: Cache::new(entries.max(1)) }
    }

    /// Those of the wanted agents that exist.
    ///
    /// # Errors
    /// When one is not known here and agent-registry cannot be asked.
    pub async fn find(
        &self,
        organization_id: OrganizationId,
        wanted: impl IntoIterator<Item = AgentReference>,
    ) -> Result<HashMap<AgentReference, AgentFacts>, ClientError> {
        let mut found = HashMap::new();
        let mut missing = FindAgents { ids: Vec::new(), external_ids: Vec::new() };
        for reference in wanted {
            let key = (organization_id, reference);
            match (self.known.get(&key), key.1) {
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
                self.known.insert((organization_id, reference.clone()), agent.clone());
                found.insert(reference, agent.clone());
            }
        }
        Ok(found)
    }
}
