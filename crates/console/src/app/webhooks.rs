//! Webhooks of the organization.

use assay_clients::{Call, ClientError, ServiceClient};
use assay_contracts::evaluations::encode_query;
use assay_contracts::ids::{WebhookDeliveryId, WebhookId};
use assay_contracts::page::Page;
use assay_contracts::webhook::{
    CreatedWebhook, Webhook, WebhookDelivery, WebhookDeliveryDetails, WebhookSecret,
};
use assay_platform::auth::ServiceClaims;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::services::send_without_body;

const WEBHOOKS: &str = "/internal/v1/webhooks";

/// The newest hundred webhooks, more than an organization may have by default.
pub(crate) async fn list_webhooks(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
) -> Result<Page<Webhook>, ClientError> {
    webhooks.get_json(claims, &format!("{WEBHOOKS}?limit=100")).await
}

pub(crate) async fn read_webhook(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
) -> Result<Webhook, ClientError> {
    webhooks.get_json(claims, &format!("{WEBHOOKS}/{id}")).await
}

/// Creates a webhook from the body of the public operation, which the service checks.
pub(crate) async fn create_webhook(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    body: &Value,
) -> Result<CreatedWebhook, ClientError> {
    webhooks.post_json(claims, WEBHOOKS, body).await
}

pub(crate) async fn change_webhook(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
    body: &Value,
) -> Result<Webhook, ClientError> {
    let (path, body) = (format!("{WEBHOOKS}/{id}"), Some(body.to_string().into()));
    webhooks
        .call_json(claims, Call { method: Method::PATCH, path: &path, headers: HeaderMap::new(), body })
        .await
}

pub(crate) async fn delete_webhook(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
) -> Result<(), ClientError> {
    send_without_body(webhooks, claims, Method::DELETE, &format!("{WEBHOOKS}/{id}")).await
}

pub(crate) async fn rotate_secret(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
) -> Result<WebhookSecret, ClientError> {
    webhooks.post_json(claims, &format!("{WEBHOOKS}/{id}/secret/rotate"), &Value::Null).await
}

pub(crate) async fn send_test(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
) -> Result<(), ClientError> {
    send_without_body(webhooks, claims, Method::POST, &format!("{WEBHOOKS}/{id}/test")).await
}

/// A page of deliveries, newest first; pages call them messages.
pub(crate) async fn list_deliveries(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
    status: Option<&str>,
    cursor: Option<&str>,
) -> Result<Page<WebhookDelivery>, ClientError> {
    let query = [("limit", Some("25")), ("status", status), ("cursor", cursor)];
    let query = query.into_iter().filter_map(|(name, value)| Some((name, value?)));
    webhooks.get_json(claims, &format!("{WEBHOOKS}/{id}/deliveries?{}", encode_query(query))).await
}

pub(crate) async fn read_delivery(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
    delivery: WebhookDeliveryId,
) -> Result<WebhookDeliveryDetails, ClientError> {
    webhooks.get_json(claims, &format!("{WEBHOOKS}/{id}/deliveries/{delivery}")).await
}

pub(crate) async fn replay_delivery(
    webhooks: &ServiceClient,
    claims: &ServiceClaims,
    id: WebhookId,
    delivery: WebhookDeliveryId,
) -> Result<(), ClientError> {
    send_without_body(
        webhooks,
        claims,
        Method::POST,
        &format!("{WEBHOOKS}/{id}/deliveries/{delivery}/replay"),
    )
    .await
}
