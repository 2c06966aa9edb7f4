//! `POST /v1/agents`: creates an AI agent.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use assay_contracts::agent::{Agent, NewAgent, NewAgentRequest};
use assay_contracts::problem::Problem;
use assay_platform::web::WebError;

use super::keyed_request::KeyedRequest;
use super::request_body::read_small;
use super::responses::{BadRequest, BodyProblems, CommonProblems, IdempotencyConflict, IdempotencyHeader};

/// Create an AI agent
///
/// The agent can be referred to by AI authors of submitted conversations at once.
#[utoipa::path(
    post,
    path = "/v1/agents",
    operation_id = "createAgent",
    tag = "Agents",
    params(IdempotencyHeader),
    request_body = NewAgentRequest,
    responses(
        (status = 201, description = "Created", body = Agent,
         headers(("Location" = String, description = "Names the agent; there is no operation to read it"))),
        BadRequest,
        (status = 409, description = "Conflict: the external_id is taken", body = Problem, content_type = "application/problem+json"),
        BodyProblems,
        IdempotencyConflict,
        CommonProblems,
    ),
)]
pub(crate) async fn create_agent(request: KeyedRequest, payload: Payload) -> Result<HttpResponse, WebError> {
    let body = read_small(&request, payload, NewAgent::parse).await?;
    request.post(&request.gateway.registry, "/internal/v1/agents", body.clone()).await
}
