//! `/internal/v1/agents`: creation for the gateway, look-up for ingest, the list for the console.

use actix_web::HttpResponse;
use actix_web::web::{Json, Payload};
use assay_contracts::agent::NewAgent;
use assay_contracts::console::AgentList;
use assay_contracts::internal::{FindAgents, FoundAgents};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::tenant::Scope;
use assay_contracts::validation::FieldError;
use assay_platform::db::idempotency::{self, Fingerprint};
use assay_platform::web::{WebError, body_error, idempotency_key, read_body, respond_with};

use super::{CLIENT_BODY_LIMITS, Call, read_before, read_service_body};
use crate::app::create_agent::{CreateAgent, CreateAgentError, create_agent};
use crate::app::find_agents::{FindAgentsError, find_agents};
use crate::app::list_agents::list_agents;

/// Registers an agent: 201 with the agent.
pub async fn create(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Agents)?;
    let key = idempotency_key(&call.request)?;
    let body = read_body(&call.request, payload, CLIENT_BODY_LIMITS).await?;
    let agent = NewAgent::parse(&body).map_err(body_error)?;
    let idempotency = key.map(|key| (key, Fingerprint::of(&body)));
    let request = CreateAgent { organization_id, agent, idempotency };
    let answer = create_agent(&call.services.store, &call.services.outbox, request).await?;
    respond_with(answer)
}

/// The agents of the organization, newest first; with `?before=ID` those that were registered before this one.
pub async fn list(call: Call) -> Result<Json<AgentList>, WebError> {
    let organization_id = call.organization_with(Scope::Agents)?;
    let before = read_before(&call.request)?;
    Ok(Json(list_agents(&call.services.store, organization_id, before).await?))
}

/// The agents with these ids or external ids.
pub async fn find(call: Call, payload: Payload) -> Result<Json<FoundAgents>, WebError> {
    let organization_id = call.caller.organization()?;
    let wanted: FindAgents = read_service_body(&call, payload).await?;
    let agents = find_agents(&call.services.store, organization_id, wanted).await?;
    Ok(Json(FoundAgents { agents }))
}

impl From<CreateAgentError> for WebError {
    fn from(error: CreateAgentError) -> Self {
        match error {
            CreateAgentError::Duplicate => duplicate_agent().into(),
            CreateAgentError::IdempotencyConflict => idempotency::conflict().into(),
            CreateAgentError::Response(cause) => Self::internal(&cause),
            CreateAgentError::Event(cause) => Self::internal(&cause),
            CreateAgentError::Database(cause) => cause.into(),
        }
    }
}

impl From<FindAgentsError> for WebError {
    fn from(error: FindAgentsError) -> Self {
        match error {
            FindAgentsError::TooMany => Self::new(ProblemCode::InvalidRequest, error.to_string()),
            FindAgentsError::Database(cause) => cause.into(),
        }
    }
}

fn duplicate_agent() -> Problem {
    let error =
        FieldError { pointer: "/external_id".to_owned(), detail: "is taken by another agent".to_owned() };
    Problem::new(
        ProblemCode::DuplicateAgent,
        "your organization has an agent with this external_id: use it, or choose another external_id",
    )
    .with_errors(vec![error])
}
