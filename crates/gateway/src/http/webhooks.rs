//! `/v1/webhooks…`: the endpoints that events are delivered to.

use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_clients::ServiceClient;
use assay_contracts::ids::WebhookId;
use assay_contracts::page::Page;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::webhook::{
    CreatedWebhook, NewWebhook, NewWebhookRequest, Webhook, WebhookChange, WebhookChangeRequest,
    WebhookSecret,
};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::WebError;
use bytes::Bytes;
use reqwest::Method;

use super::authentication::Authenticated;
use super::context::{Gateway, copy_headers, path_id, with_query};
use super::request_body::read_small;
use super::responses::{
    BadRequest, BodyProblems, CommonProblems, IdempotencyConflict, IdempotencyHeader, WebhookAddressRefused,
    WebhookNotFound, WebhooksOff,
};
use crate::app::{Forward, forward};

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
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    let body = read_small(&gateway, &caller, &request, payload, NewWebhook::parse).await?;
    send(&gateway, &request, &caller.claims, Method::POST, "/internal/v1/webhooks", Some(body.clone())).await
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
pub(crate) async fn list_webhooks(
    request: HttpRequest,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    caller.occupy_slot(&gateway)?;
    let path = with_query("/internal/v1/webhooks", &request);
    send(&gateway, &request, &caller.claims, Method::GET, &path, None).await
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
        WebhookNotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn get_webhook(
    request: HttpRequest,
    id: Path<String>,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    to_webhook(&request, &gateway, &caller, &id, Method::GET, "").await
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
        WebhookNotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn change_webhook(
    request: HttpRequest,
    payload: Payload,
    id: Path<String>,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    let body = read_small(&gateway, &caller, &request, payload, WebhookChange::parse).await?;
    let id: WebhookId = path_id(&id, ProblemCode::WebhookNotFound)?;
    let path = format!("/internal/v1/webhooks/{id}");
    send(&gateway, &request, &caller.claims, Method::PATCH, &path, Some(body.clone())).await
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
        WebhookNotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn delete_webhook(
    request: HttpRequest,
    id: Path<String>,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    to_webhook(&request, &gateway, &caller, &id, Method::DELETE, "").await
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
        WebhookNotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn get_webhook_secret(
    request: HttpRequest,
    id: Path<String>,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    to_webhook(&request, &gateway, &caller, &id, Method::GET, "/secret").await
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
        WebhookNotFound,
        CommonProblems,
    ),
)]
pub(crate) async fn rotate_webhook_secret(
    request: HttpRequest,
    id: Path<String>,
    gateway: Data<Gateway>,
    caller: Authenticated,
) -> Result<HttpResponse, WebError> {
    to_webhook(&request, &gateway, &caller, &id, Method::POST, "/secret/rotate").await
}

/// Occupies a slot and passes a request without a body on to the webhook with this id; `rest` is the path behind the id, with the
/// query. A function, not an extractor: a handler's extractors run concurrently, and the slot comes first.
pub(super) async fn to_webhook(
    request: &HttpRequest,
    gateway: &Gateway,
    caller: &Authenticated,
    id: &str,
    method: Method,
    rest: &str,
) -> Result<HttpResponse, WebError> {
    caller.occupy_slot(gateway)?;
    let id: WebhookId = path_id(id, ProblemCode::WebhookNotFound)?;
    let path = format!("/internal/v1/webhooks/{id}{rest}");
    send(gateway, request, &caller.claims, method, &path, None).await
}

pub(super) async fn send(
    gateway: &Gateway,
    request: &HttpRequest,
    claims: &ServiceClaims,
    method: Method,
    path: &str,
    body: Option<Bytes>,
) -> Result<HttpResponse, WebError> {
    let headers = copy_headers(request, &["idempotency-key"]);
    forward(Forward { service: service(gateway)?, claims, method, path, headers, body }).await
}

fn service(gateway: &Gateway) -> Result<&ServiceClient, WebError> {
    gateway.webhooks.as_ref().ok_or_else(|| {
        WebError::new(
            ProblemCode::WebhooksOff,
            "the operator of this service has to turn them on: services.webhooks_url",
        )
    })
}
