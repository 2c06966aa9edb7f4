//! `/internal/v1/webhooks/{id}/deliveries`: the delivery log, replays and test messages.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::page::Page;
use assay_contracts::tenant::Scope;
use assay_contracts::webhook::{WebhookDelivery, WebhookDeliveryDetails};
use assay_platform::web::{Caller, WebError, page_parameters, query_pairs};

use super::errors::delivery_not_found;
use super::webhooks::webhook_id;
use super::{Services, parameters};
use crate::app::{ListDeliveries, list_deliveries, read_delivery, replay_delivery, send_test};

pub(super) async fn list(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    id: Path<String>,
) -> Result<Json<Page<WebhookDelivery>>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let endpoint_id = webhook_id(&id)?;
    let mut query = query_pairs(&request, &["cursor", "limit", "status"])?;
    let status = parameters::status(&query)?;
    let (cursor, limit) = page_parameters(&mut query)?;
    let list_request = ListDeliveries { organization_id, endpoint_id, status, cursor, limit };
    Ok(Json(list_deliveries(&services.store, &services.keys, list_request).await?))
}

/// One message with its attempts.
pub(super) async fn read(
    caller: Caller,
    services: Data<Services>,
    ids: Path<(String, String)>,
) -> Result<Json<WebhookDeliveryDetails>, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let endpoint_id = webhook_id(&ids.0)?;
    let id = ids.1.parse().map_err(|_| delivery_not_found())?;
    Ok(Json(read_delivery(&services.store, organization_id, endpoint_id, id).await?))
}

/// Queues a message again: 202 with the message.
pub(super) async fn replay(
    caller: Caller,
    services: Data<Services>,
    ids: Path<(String, String)>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    let endpoint_id = webhook_id(&ids.0)?;
    let id = ids.1.parse().map_err(|_| delivery_not_found())?;
    services.request_limit.check(organization_id)?;
    let queued = replay_delivery(&services.store, organization_id, endpoint_id, id).await?;
    services.wakeup.notify_one();
    Ok(HttpResponse::Accepted().json(queued))
}

/// Queues a test message: 202 with the message.
pub(super) async fn test(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Webhooks)?.organization_id;
    services.request_limit.check(organization_id)?;
    let queued = send_test(&services.store, organization_id, webhook_id(&id)?).await?;
    services.wakeup.notify_one();
    Ok(HttpResponse::Accepted().json(queued))
}
