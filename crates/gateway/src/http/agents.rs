//! `POST /v1/agents`: creates an AI agent.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::agent::{Agent, NewAgent, NewAgentRequest};
use assay_contracts::problem::Problem;
use assay_platform::web::WebError;

use super::authentication::Authenticated;
use super::context::{Gateway, copy_headers};
use super::request_body::read_small;
use super::responses::{BadRequest, BodyProblems, CommonProblems, IdempotencyConflict, IdempotencyHeader};
use crate::app::{Forward, forward};

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
pub(crate) async fn create_agent(
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    let body = read_small(&gateway, &caller, &request, payload, NewAgent::parse).await?;
    forward(Forward {
        service: &gateway.registry,
        claims: &caller.claims,
        method: reqwest::Method::POST,
        path: "/internal/v1/agents",
        headers: copy_headers(&request, &["idempotency-key"]),
        body: Some(body.clone()),
    })
    .await
}
