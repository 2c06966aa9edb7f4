//! `/internal/v1/webhooks`: forwarded by the gateway from `/v1/webhooks`.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::{Json, Path, Payload};
use assay_contracts::page::Page;
use assay_contracts::tenant::Scope;
use assay_contracts::webhook::{NewWebhook, Webhook, WebhookChange, WebhookSecret};
use assay_platform::db::idempotency::Fingerprint;
use assay_platform::web::{
    BodyLimits, SMALL_BODY, WebError, body_error, idempotency_key, page_parameters, query_pairs, read_body,
    respond_with,
};

use super::Call;
use super::errors::not_found;
use crate::app::{
    CreateWebhook, change_webhook, create_webhook, delete_webhook, list_webhooks, read_webhook,
    rotate_secret, show_secret,
};
use crate::domain::endpoint::EndpointReference;

const BODY_LIMITS: BodyLimits = BodyLimits { max_bytes: SMALL_BODY, deadline: Duration::from_secs(10) };

/// 201 with the endpoint and its secret.
pub(super) async fn create(call: Call, payload: Payload) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Webhooks)?;
    let key = idempotency_key(&call.request)?;
    let body = read_body(&call.request, payload, BODY_LIMITS).await?;
    let webhook = NewWebhook::parse(&body).map_err(body_error)?;
    let idempotency = key.map(|key| (key, Fingerprint::of(&body)));
    let limit = call.services.endpoints_per_organization;
    let create_request = CreateWebhook { organization_id, webhook, idempotency, limit };
    let created =
        create_webhook(&call.services.store, &call.services.keys, &call.services.rules, create_request);
    respond_with(created.await?)
}

pub(super) async fn list(call: Call) -> Result<Json<Page<Webhook>>, WebError> {
    let organization_id = call.organization_with(Scope::Webhooks)?;
    let page = page_parameters(&mut query_pairs(&call.request, &["cursor", "limit"])?)?;
    Ok(Json(list_webhooks(&call.services.store, &call.services.keys, organization_id, page).await?))
}

pub(super) async fn read(call: Call, id: Path<String>) -> Result<Json<Webhook>, WebError> {
    Ok(Json(read_webhook(&call.services.store, reference(&call, &id)?).await?.into()))
}

pub(super) async fn change(
    call: Call,
    payload: Payload,
    id: Path<String>,
) -> Result<Json<Webhook>, WebError> {
    let endpoint = reference(&call, &id)?;
    let body = read_body(&call.request, payload, BODY_LIMITS).await?;
    let change = WebhookChange::parse(&body).map_err(body_error)?;
    let changed = change_webhook(&call.services.store, &call.services.rules, endpoint, change).await?;
    // A re-enabled endpoint may have pending messages.
    call.services.sender_wakeup.notify_one();
    Ok(Json(changed))
}

pub(super) async fn remove(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    delete_webhook(&call.services.store, reference(&call, &id)?).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(super) async fn secret(call: Call, id: Path<String>) -> Result<Json<WebhookSecret>, WebError> {
    let endpoint = reference(&call, &id)?;
    Ok(Json(show_secret(&call.services.store, &call.services.keys, endpoint).await?))
}

pub(super) async fn rotate(call: Call, id: Path<String>) -> Result<Json<WebhookSecret>, WebError> {
    let (endpoint, previous) = (reference(&call, &id)?, call.services.previous_secret_millis);
    Ok(Json(rotate_secret(&call.services.store, &call.services.keys, endpoint, previous).await?))
}

/// The endpoint of the calling organization with this id. Malformed ids are answered like unknown ones.
pub(super) fn reference(call: &Call, id: &str) -> Result<EndpointReference, WebError> {
    let organization_id = call.organization_with(Scope::Webhooks)?;
    Ok(EndpointReference { organization_id, id: id.parse().map_err(|_| not_found())? })
}
