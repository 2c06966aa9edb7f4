//! `/v1/webhooks/{id}/deliveries…` and `/v1/webhooks/{id}/test`: the delivery log, replay, and test messages.

use actix_web::HttpResponse;
use actix_web::web::Path;
use assay_contracts::ids::{WebhookDeliveryId, WebhookId};
use assay_contracts::page::Page;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::webhook::{DeliveryStatus, WebhookDelivery, WebhookDeliveryDetails};
use assay_platform::web::WebError;
use reqwest::Method;

use super::context::{path_id, with_query};
use super::keyed_request::KeyedRequest;
use super::responses::{BadRequest, WebhookProblems};
use super::webhooks::{forward_to_webhook, send};

/// Send a trial message
///
/// A `webhook.test` event, also when the webhook does not name it.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/test",
    operation_id = "testWebhook",
    tag = "Webhooks",
    params(("id" = String, Path, description = "Webhook id")),
    responses(
        (status = 202, description = "Queued", body = WebhookDelivery),
        WebhookProblems,
        (status = 409, description = "Conflict: the webhook is disabled", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn test_webhook(request: KeyedRequest, id: Path<String>) -> Result<HttpResponse, WebError> {
    forward_to_webhook(&request, &id, Method::POST, "/test").await
}

/// List the deliveries of a webhook
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/deliveries",
    operation_id = "listWebhookDeliveries",
    tag = "Webhooks",
    params(
        ("id" = String, Path, description = "Webhook id"),
        ("status" = Option<DeliveryStatus>, Query, description = "Only deliveries in this state"),
        ("cursor" = Option<String>, Query, min_length = 1, description = "Opaque cursor of a previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items at most; 20 when left out"),
    ),
    responses(
        (status = 200, description = "A page of deliveries", body = Page<WebhookDelivery>),
        BadRequest,
        WebhookProblems,
    ),
)]
pub(crate) async fn list_webhook_deliveries(
    request: KeyedRequest,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let rest = with_query("/deliveries", &request.http);
    forward_to_webhook(&request, &id, Method::GET, &rest).await
}

/// Get a delivery
///
/// With its payload and its attempts.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{id}/deliveries/{deliveryId}",
    operation_id = "getWebhookDelivery",
    tag = "Webhooks",
    params(
        ("id" = String, Path, description = "Webhook id"),
        ("deliveryId" = String, Path, description = "Delivery id: the message's `webhook-id`"),
    ),
    responses(
        (status = 200, description = "The delivery", body = WebhookDeliveryDetails),
        WebhookProblems,
    ),
)]
pub(crate) async fn get_webhook_delivery(
    request: KeyedRequest,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, WebError> {
    forward_to_delivery(&request, &ids, Method::GET, "").await
}

/// Send a delivery again
///
/// Under the same `webhook-id`, with a new timestamp and signature, and the retry schedule from its beginning.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{id}/deliveries/{deliveryId}/replay",
    operation_id = "replayWebhookDelivery",
    tag = "Webhooks",
    params(
        ("id" = String, Path, description = "Webhook id"),
        ("deliveryId" = String, Path, description = "Delivery id: the message's `webhook-id`"),
    ),
    responses(
        (status = 202, description = "Queued", body = WebhookDelivery),
        WebhookProblems,
        (status = 409, description = "Conflict: the webhook is disabled, or the message was erased", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn replay_webhook_delivery(
    request: KeyedRequest,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, WebError> {
    forward_to_delivery(&request, &ids, Method::POST, "/replay").await
}

/// [`forward_to_webhook`] for a delivery; `rest` is the path behind its id.
async fn forward_to_delivery(
    request: &KeyedRequest,
    (id, delivery_id): &(String, String),
    method: Method,
    rest: &str,
) -> Result<HttpResponse, WebError> {
    request.occupy_slot()?;
    let id: WebhookId = path_id(id, ProblemCode::WebhookNotFound)?;
    let delivery_id: WebhookDeliveryId = path_id(delivery_id, ProblemCode::WebhookDeliveryNotFound)?;
    let path = format!("/internal/v1/webhooks/{id}/deliveries/{delivery_id}{rest}");
    send(request, method, &path, None).await
}
