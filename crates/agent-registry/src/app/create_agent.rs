//! Registers the AI agent of a `POST /v1/agents`.

use assay_contracts::agent::NewAgent;
use assay_contracts::event::AgentCreated;
use assay_contracts::ids::OrganizationId;
use assay_messaging::outbox::Outbox;
use assay_messaging::{EncodeError, OutgoingEvent};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::{Fingerprint, IdempotencyKey, KeyReuse, Record, RecordedResponse};
use assay_platform::runtime::{new_id, now};

use crate::domain::{agent_facts, new_agent};
use crate::store::{AgentToStore, Store, StoreAgentOutcome};

pub struct CreateAgent {
    pub organization_id: OrganizationId,
    pub agent: NewAgent,
    /// Idempotency key and fingerprint of the body.
    pub idempotency: Option<(IdempotencyKey, Fingerprint)>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateAgentError {
    #[error("the external id is taken")]
    Duplicate,
    #[error("the idempotency key was used with another body")]
    IdempotencyConflict,
    #[error("the agent cannot be written as JSON: {0}")]
    Response(#[from] serde_json::Error),
    #[error(transparent)]
    Event(#[from] EncodeError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Registers an agent and returns it. A repeated request gets the same response, byte for byte.
///
/// # Errors
/// [`CreateAgentError`]; nothing is stored then.
pub async fn create_agent(
    store: &Store,
    outbox: &Outbox,
    request: CreateAgent,
) -> Result<RecordedResponse, CreateAgentError> {
    let organization_id = request.organization_id;
    let agent = new_agent(new_id(), request.agent, now());
    let response = RecordedResponse::created(format!("/v1/agents/{}", agent.id), &agent)?;
    let created = AgentCreated { organization_id, agent: agent_facts(&agent), created_at: agent.created_at };
    let event = OutgoingEvent::new(new_id(), agent.created_at, &created)?;
    let record = Record::of(organization_id, request.idempotency, &response);
    match store.create_agent(AgentToStore { organization_id, agent, event, record }).await? {
        StoreAgentOutcome::Created => {
            outbox.wake();
            Ok(response)
        }
        StoreAgentOutcome::Duplicate => Err(CreateAgentError::Duplicate),
        StoreAgentOutcome::IdempotencyKeyReused(KeyReuse::Replay(first_response)) => Ok(first_response),
        StoreAgentOutcome::IdempotencyKeyReused(KeyReuse::Conflict) => {
            Err(CreateAgentError::IdempotencyConflict)
        }
    }
}
