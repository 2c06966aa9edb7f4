//! `/internal/v1/webhooks`: forwarded by the gateway from `/v1/webhooks`.

use std::time::Duration;

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::ids::WebhookId;
use assay_contracts::page::Page;
use assay_contracts::tenant::Scope;
use assay_contracts::webhook::{NewWebhook, Webhook, WebhookChange, WebhookSecret};
use assay_platform::db::idempotency::Fingerprint;
use assay_platform::web::{
    BodyLimits, Caller, SMALL_BODY, WebError, body_error, idempotency_key, page_parameters, query_pairs,
    read_body, respond_with,
};

use super::Services;
use super::errors::not_found;
use crate::app::{
    CreateWebhook, ListWebhooks, change_webhook, create_webhook, delete_webhook, list_webhooks, read_webhook,
    rotate_secret, show_secret,
};

const BODY_LIMITS: BodyLimits = BodyLimits { max_bytes: SMALL_BODY, deadline: Duration::from_secs(10) };

/// 201 with the endpoint and its secret.
pub(super) async fn create(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let key = idempotency_key(&request)?;
    let body = read_body(&request, payload, BODY_LIMITS).await?;
    let webhook = NewWebhook::parse(&body).map_err(body_error)?;
    let idempotency = key.map(|key| (key, Fingerprint::of(&body)));
    let limit = services.endpoints_per_organization;
    let create_request = CreateWebhook { organization_id, webhook, idempotency, limit };
    let created = create_webhook(&services.store, &services.keys, &services.rules, create_request);
    respond_with(created.await?)
}

pub(super) async fn list(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<Json<Page<Webhook>>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let (cursor, limit) = page_parameters(&mut query_pairs(&request, &["cursor", "limit"])?)?;
    let list_request = ListWebhooks { organization_id, cursor, limit };
    Ok(Json(list_webhooks(&services.store, &services.keys, list_request).await?))
}

pub(super) async fn read(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<Json<Webhook>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    Ok(Json(read_webhook(&services.store, organization_id, webhook_id(&id)?).await?.into()))
}

pub(super) async fn change(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
    id: Path<String>,
) -> Result<Json<Webhook>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let id = webhook_id(&id)?;
    let body = read_body(&request, payload, BODY_LIMITS).await?;
    let change = WebhookChange::parse(&body).map_err(body_error)?;
    let changed = change_webhook(&services.store, &services.rules, organization_id, id, change);
    let changed = changed.await?;
    // A re-enabled endpoint may have pending messages.
    services.wakeup.notify_one();
    Ok(Json(changed))
}

pub(super) async fn remove(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    delete_webhook(&services.store, organization_id, webhook_id(&id)?).await?;
    Ok(HttpResponse::NoContent().finish())
}

pub(super) async fn secret(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<Json<WebhookSecret>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let id = webhook_id(&id)?;
    Ok(Json(show_secret(&services.store, &services.keys, organization_id, id).await?))
}

pub(super) async fn rotate(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<Json<WebhookSecret>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let (id, previous) = (webhook_id(&id)?, services.previous_secret_millis);
    let rotated = rotate_secret(&services.store, &services.keys, organization_id, id, previous);
    Ok(Json(rotated.await?))
}

/// Malformed ids are answered like unknown ones.
pub(super) fn webhook_id(text: &str) -> Result<WebhookId, WebError> {
    text.parse().map_err(|_| not_found())
}
