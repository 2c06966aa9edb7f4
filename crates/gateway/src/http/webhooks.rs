//! `/v1/webhooks…`: the endpoints that events are delivered to.

use actix_web::HttpResponse;
use actix_web::web::{Path, Payload};
use assay_clients::ServiceClient;
use assay_contracts::ids::WebhookId;
use assay_contracts::page::Page;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::webhook::{
    CreatedWebhook, NewWebhook, NewWebhookRequest, Webhook, WebhookChange, WebhookChangeRequest,
    WebhookSecret,
};
use assay_platform::web::WebError;
use bytes::Bytes;
use reqwest::Method;

use super::context::{Gateway, path_id, with_query};
use super::keyed_request::KeyedRequest;
use super::request_body::read_small;
use super::responses::{
    BadRequest, BodyProblems, CommonProblems, IdempotencyConflict, IdempotencyHeader, WebhookAddressRefused,
    WebhookProblems, WebhooksOff,
};
use crate::app::{ServiceCall, forward};

/// Create a webhook
///
/// A few seconds after the answer, the endpoint begins to receive the events that it names, as messages of Standard Webhooks 1.0
/// that are signed with the secret of the answer. Repeating a request with its `Idempotency-Key` answers with the secret that the
/// webhook has then.
#[utoipa::path(
    post,
    path = "/v1/webhooks",
    operation_id = "createWebhook",
    tag = "Webhooks",
    params(IdempotencyHeader),
    request_body = NewWebhookRequest,
    responses(
        (status = 201, description = "Created", body = CreatedWebhook,
         headers(("Location" = String, description = "Address of the webhook"))),
        WebhookAddressRefused,
        BodyProblems,
        WebhooksOff,
        (status = 409, description = "Conflict: your organization has as many webhooks as it may have", body = Problem, content_type = "application/problem+json"),
        IdempotencyConflict,
        CommonProblems,
    ),
)]
pub(crate) async fn create_webhook(
    request: KeyedRequest,
    payload: Payload,
) -> Result<HttpResponse, WebError> {
    let body = read_small(&request, payload, NewWebhook::parse).await?;
    send(&request, Method::POST, "/internal/v1/webhooks", Some(body.clone())).await
}

/// List webhooks
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    operation_id = "listWebhooks",
    tag = "Webhooks",
    params(
        ("cursor" = Option<String>, Query, min_length = 1, description = "Opaque cursor of a previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items at most; 20 when left out"),
    ),
    responses(
        (status = 200, description = "A page of webhooks", body = Page<Webhook>),
        BadRequest,
        WebhooksOff,
        CommonProblems,
    ),
)]
pub(crate) async fn list_webhooks(request: KeyedRequest) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    send(&request, Method::GET, &with_query("/internal/v1/webhooks", &request.http), None).await
}

/// Get a webhook
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}",
    operation_id = "getWebhook",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    responses(
        (status = 200, description = "The webhook", body = Webhook),
        WebhookProblems,
    ),
)]
pub(crate) async fn get_webhook(request: KeyedRequest, id: Path<String>) -> Result<HttpResponse, WebError> {
    forward_to_webhook(&request, &id, Method::GET, "").await
}

/// Change a webhook
///
/// Omitted fields keep their values. A disabled webhook receives nothing; its pending messages are kept.
#[utoipa::path(
    patch,
    path = "/v1/webhooks/{id}",
    operation_id = "changeWebhook",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    request_body = WebhookChangeRequest,
    responses(
        (status = 200, description = "Changed", body = Webhook),
        WebhookAddressRefused,
        BodyProblems,
        WebhookProblems,
    ),
)]
pub(crate) async fn change_webhook(
    request: KeyedRequest,
    payload: Payload,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let body = read_small(&request, payload, WebhookChange::parse).await?;
    let id: WebhookId = path_id(&id, ProblemCode::WebhookNotFound)?;
    send(&request, Method::PATCH, &format!("/internal/v1/webhooks/{id}"), Some(body.clone())).await
}

/// Delete a webhook
///
/// Also deletes its delivered and its pending messages.
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{id}",
    operation_id = "deleteWebhook",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    responses(
        (status = 204, description = "Deleted"),
        WebhookProblems,
    ),
)]
pub(crate) async fn delete_webhook(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    forward_to_webhook(&request, &id, Method::DELETE, "").await
}

/// Get a webhook's secret
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/secret",
    operation_id = "getWebhookSecret",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    responses(
        (status = 200, description = "The secret", body = WebhookSecret),
        WebhookProblems,
    ),
)]
pub(crate) async fn get_webhook_secret(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    forward_to_webhook(&request, &id, Method::GET, "/secret").await
}

/// Rotate a webhook's secret
///
/// For a day, messages carry two signatures: one with the new and one with the previous secret.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/secret/rotate",
    operation_id = "rotateWebhookSecret",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    responses(
        (status = 200, description = "The new secret", body = WebhookSecret),
        WebhookProblems,
    ),
)]
pub(crate) async fn rotate_webhook_secret(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    forward_to_webhook(&request, &id, Method::POST, "/secret/rotate").await
}

/// Occupies a slot and passes a request without a body on to the webhook with this id; `rest` is the path behind the id, with the
/// query. A function, not an extractor: a handler's extractors run concurrently, and the slot comes first.
pub(super) async fn forward_to_webhook(
    request: &KeyedRequest,
    id: &str,
    method: Method,
    rest: &str,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: WebhookId = path_id(id, ProblemCode::WebhookNotFound)?;
    send(request, method, &format!("/internal/v1/webhooks/{id}{rest}"), None).await
}

/// Passes a request on to the service of webhooks.
pub(super) async fn send(
    request: &KeyedRequest,
    method: Method,
    path: &str,
    body: Option<Bytes>,
) -> Result<HttpResponse, WebError> {
    let get = request.get(webhooks_service(&request.gateway)?, path, &["idempotency-key"]);
    forward(ServiceCall { method, body, ..get }).await
}

fn webhooks_service(gateway: &Gateway) -> Result<&ServiceClient, WebError> {
    let advice = "the operator of this service has to turn them on: services.webhooks_url";
    gateway.webhooks.as_ref().ok_or_else(|| WebError::new(ProblemCode::WebhooksOff, advice))
}
