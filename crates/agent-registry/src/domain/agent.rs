//! AI agents of an organization.

use assay_contracts::agent::{Agent, AgentFacts, NewAgent};
use assay_contracts::ids::AgentId;
use assay_contracts::time::Timestamp;
use sha2::{Digest, Sha256};

/// SHA-256 of an agent's external id. The longest external id exceeds the size limit of an index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExternalIdHash([u8; 32]);

impl ExternalIdHash {
    pub fn of(external_id: &str) -> Self {
        Self(Sha256::digest(external_id.as_bytes()).into())
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

pub fn new_agent(id: AgentId, request: NewAgent, created_at: Timestamp) -> Agent {
    let NewAgent { external_id, name, agent_type } = request;
    Agent { id, external_id, name, agent_type, created_at }
}

/// The part of an agent that other services receive.
pub fn agent_facts(agent: &Agent) -> AgentFacts {
    AgentFacts { id: agent.id, external_id: agent.external_id.clone(), name: agent.name.clone() }
}
