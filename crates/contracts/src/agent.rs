//! AI agents, and the body of `POST /v1/agents`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::AgentId;
use crate::json::{ObjectReader, ValidationErrors, parse_tree};
use crate::named_enum::named_enum;
use crate::time::Timestamp;
use crate::validation::{BodyError, shortened};

/// A registered AI agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Service agent id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: AgentId,
    /// The caller's stable id of the agent.
    #[schema(min_length = 1, example = "support-bot")]
    pub external_id: String,
    /// Display name.
    #[schema(min_length = 1, example = "Support Bot")]
    pub name: String,
    /// Always `custom`.
    #[serde(rename = "type")]
    pub agent_type: AgentType,
    /// Epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
}

named_enum!(
    /// The kind of an agent; the specification supports one.
    #[derive(Default)]
    AgentType {
        /// The caller's own agent.
        #[default]
        Custom = "custom",
    }
);

/// A registered AI agent of a row, as it was named at the time of the import.
// Also part of events; the comments are those of the public API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ItemAgent)]
pub struct AgentFacts {
    /// Service agent id: the value of the filter `agent`.
    #[schema(value_type = String)]
    pub id: AgentId,
    /// The caller's id of the agent.
    pub external_id: String,
    /// Display name.
    pub name: String,
}

/// Maximum bytes of the names and external ids of a ticket's agents in events, lists, summaries and files. With more, each text is
/// shortened to [`SHORT_AGENT_CHARS`]: a conversation can name fifty agents whose names and ids have a thousand characters each.
const MAX_AGENTS_BYTES: usize = 16 * 1024;
const SHORT_AGENT_CHARS: usize = 64;

impl AgentFacts {
    /// The agents of a ticket as events have them: shortened if they are larger than 16 KiB together.
    #[must_use]
    pub fn bounded(agents: Vec<Self>) -> Vec<Self> {
        let bytes: usize = agents.iter().map(|agent| agent.external_id.len() + agent.name.len()).sum();
        if bytes <= MAX_AGENTS_BYTES {
            return agents;
        }
        let short = |text: String| shortened(&text, SHORT_AGENT_CHARS);
        let agents = agents.into_iter();
        agents
            .map(|Self { id, external_id, name }| Self {
                id,
                external_id: short(external_id),
                name: short(name),
            })
            .collect()
    }
}

/// A checked body of `POST /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAgent {
    /// The caller's stable id of the agent.
    pub external_id: String,
    /// Display name.
    pub name: String,
    /// Always `custom`.
    #[serde(rename = "type")]
    pub agent_type: AgentType,
}

impl NewAgent {
    /// Reads and checks a request body. `type` may be left out.
    ///
    /// # Errors
    /// [`BodyError`] with all validation errors.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body, &["external_id", "name", "type"])?;
        let mut errors = ValidationErrors::default();
        let agent = ObjectReader::new(tree, "", &mut errors).and_then(|mut object| {
            let external_id = object.required_short_text("external_id");
            let name = object.required_short_text("name");
            let agent_type = object.optional_choice("type").unwrap_or_default();
            Some(Self { external_id: external_id?, name: name?, agent_type })
        });
        errors.finish(agent)
    }
}

/// Request to register an AI agent.
// The OpenAPI schema of the body that `NewAgent::parse` reads.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct NewAgentRequest {
    /// The caller's stable id of the agent; AI authors refer to it.
    #[schema(min_length = 1, max_length = 1024, example = "support-bot")]
    external_id: String,
    /// Display name.
    #[schema(min_length = 1, max_length = 1024, example = "Support Bot")]
    name: String,
    /// Only `custom` is supported.
    #[schema(rename = "type", default = "custom")]
    agent_type: Option<AgentType>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_shortened_only_when_they_are_large() {
        let agent = |length: usize| AgentFacts {
            id: uuid::Uuid::nil().into(),
            external_id: "é".repeat(length),
            name: "名".repeat(length),
        };
        let ordinary = vec![agent(60); 50];
        assert_eq!(AgentFacts::bounded(ordinary.clone()), ordinary);
        let long = vec![agent(1_024); 3];
        assert_eq!(AgentFacts::bounded(long.clone()), long, "15 KiB");
        let bounded = AgentFacts::bounded(vec![agent(1_024); 50]);
        let shortened = (format!("{}…", "é".repeat(64)), format!("{}…", "名".repeat(64)));
        assert!(
            bounded.iter().all(|agent| (&agent.external_id, &agent.name) == (&shortened.0, &shortened.1))
        );
    }
}
