//! Registers an AI agent: specification, "POST /v1/agents".

use assay_contracts::agent::NewAgent;
use assay_contracts::event::AgentCreated;
use assay_contracts::ids::OrganizationId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{Earlier, Fingerprint, IdempotencyKey, Record, StoredAnswer};
use assay_platform::runtime::{new_id, now};

use crate::domain::{agent_facts, new_agent};
use crate::store::{AgentStored, AgentToStore, Store};

const CREATED: u16 = 201;

/// A request to register an agent.
pub struct CreateAgent {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// What to register.
    pub agent: NewAgent,
    /// The request's idempotency key and the fingerprint of its body.
    pub idempotency: Option<(IdempotencyKey, Fingerprint)>,
}

/// Why no agent was registered.
#[derive(Debug, thiserror::Error)]
pub enum CreateAgentError {
    /// Another agent of the organization has this external id.
    #[error("the external id is taken")]
    Duplicate,
    /// The idempotency key belongs to another request.
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    /// The answer cannot be written as JSON.
    #[error("the agent cannot be written as JSON: {0}")]
    Answer(#[from] serde_json::Error),
    /// The event cannot be encoded.
    #[error(transparent)]
    Event(#[from] EncodeError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Registers an agent and answers with it; the same request again gets the same answer, byte for byte.
///
/// # Errors
/// [`CreateAgentError`]; nothing is stored then.
pub async fn create_agent(
    store: &dyn Store,
    outbox: &Outbox,
    request: CreateAgent,
) -> Result<StoredAnswer, CreateAgentError> {
    let organization_id = request.organization_id;
    let agent = new_agent(new_id(), request.agent, now());
    let answer = StoredAnswer {
        status: CREATED,
        location: Some(format!("/v1/agents/{}", agent.id)),
        body: serde_json::to_string(&agent)?,
    };
    let created = AgentCreated { organization_id, agent: agent_facts(&agent), created_at: agent.created_at };
    let event = OutgoingEvent::new(new_id(), agent.created_at, &created)?;
    let record = request.idempotency.map(|(key, fingerprint)| Record {
        organization_id,
        key,
        fingerprint,
        answer: answer.clone(),
    });
    match store.create_agent(AgentToStore { organization_id, agent, event, record }).await? {
        AgentStored::Created => {
            outbox.wake();
            Ok(answer)
        }
        AgentStored::Duplicate => Err(CreateAgentError::Duplicate),
        AgentStored::Earlier(Earlier::SameRequest(first_answer)) => Ok(first_answer),
        AgentStored::Earlier(Earlier::OtherRequest) => Err(CreateAgentError::IdempotencyConflict),
    }
}
