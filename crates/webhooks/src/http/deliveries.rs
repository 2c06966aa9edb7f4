//! `/internal/v1/webhooks/{id}/deliveries`: the delivery log, replays and test messages.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use assay_contracts::evaluation::Named as _;
use assay_contracts::page::Page;
use assay_contracts::tenant::Scope;
use assay_contracts::webhook::{DeliveryStatus, WebhookDelivery, WebhookDeliveryDetails};
use assay_platform::web::{WebError, invalid_parameter, page_parameters, query_pairs};

use super::Call;
use super::errors::delivery_not_found;
use super::webhooks::reference;
use crate::app::{ListDeliveries, list_deliveries, read_delivery, replay_delivery, send_test};

pub(super) async fn list(call: Call, id: Path<String>) -> Result<Json<Page<WebhookDelivery>>, WebError> {
    let endpoint = reference(&call, &id)?;
    let mut query = query_pairs(&call.request, &["cursor", "limit", "status"])?;
    let status = status_of(&query)?;
    let (cursor, limit) = page_parameters(&mut query)?;
    let list_request = ListDeliveries { endpoint, status, cursor, limit };
    Ok(Json(list_deliveries(&call.services.store, &call.services.keys, list_request).await?))
}

/// One message with its attempts.
pub(super) async fn read(
    call: Call,
    ids: Path<(String, String)>,
) -> Result<Json<WebhookDeliveryDetails>, WebError> {
    let endpoint = reference(&call, &ids.0)?;
    let id = ids.1.parse().map_err(|_| delivery_not_found())?;
    Ok(Json(read_delivery(&call.services.store, endpoint, id).await?))
}

/// Queues a message again: 202 with the message.
pub(super) async fn replay(call: Call, ids: Path<(String, String)>) -> Result<HttpResponse, WebError> {
    let endpoint = reference(&call, &ids.0)?;
    let id = ids.1.parse().map_err(|_| delivery_not_found())?;
    call.services.request_limit.check(endpoint.organization_id)?;
    let queued = replay_delivery(&call.services.store, endpoint, id).await?;
    call.services.sender_wakeup.notify_one();
    Ok(HttpResponse::Accepted().json(queued))
}

/// Queues a test message: 202 with the message.
pub(super) async fn test(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Webhooks)?;
    call.services.request_limit.check(organization_id)?;
    let queued = send_test(&call.services.store, reference(&call, &id)?).await?;
    call.services.sender_wakeup.notify_one();
    Ok(HttpResponse::Accepted().json(queued))
}

/// The parameter `status`, one of [`DeliveryStatus::ALL`].
fn status_of(query: &BTreeMap<String, String>) -> Result<Option<DeliveryStatus>, WebError> {
    let status = query.get("status").map(|name| {
        DeliveryStatus::from_name(name).ok_or_else(|| {
            invalid_parameter("status", &format!("must be one of: {}", DeliveryStatus::names()))
        })
    });
    status.transpose()
}
