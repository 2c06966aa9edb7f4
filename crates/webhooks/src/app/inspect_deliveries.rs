//! The delivery log of an endpoint.

use assay_contracts::ids::WebhookDeliveryId;
use assay_contracts::page::Page;
use assay_contracts::webhook::{DeliveryStatus, WebhookDelivery, WebhookDeliveryDetails};
use assay_platform::auth::KeyRing;
use assay_platform::web::cursor::{Cursors, Position};

use super::{RequestError, read_webhook};
use crate::domain::endpoint::EndpointReference;
use crate::store::{LogPage, LoggedDelivery, WebhookStore};

pub(crate) struct ListDeliveries {
    pub(crate) endpoint: EndpointReference,
    pub(crate) status: Option<DeliveryStatus>,
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u32,
}

/// A page of the delivery log, newest first.
pub(crate) async fn list_deliveries(
    store: &WebhookStore,
    keys: &KeyRing,
    request: ListDeliveries,
) -> Result<Page<WebhookDelivery>, RequestError> {
    let ListDeliveries { endpoint, status, cursor, limit } = request;
    read_webhook(store, endpoint).await?;
    let EndpointReference { organization_id, id } = endpoint;
    let cursors = Cursors::new(keys, &format!("deliveries of {organization_id} to {id}"));
    let after = cursor.map(|cursor| cursors.decode(&cursor)).transpose()?;
    let page = LogPage { endpoint, status, after, limit: limit.saturating_add(1) };
    let found = store.list_deliveries(page).await?;
    Ok(cursors.page(found, limit, |last| Position { created_at: last.created_at, id: last.id.as_uuid() }))
}

/// One message with its attempts.
pub(crate) async fn read_delivery(
    store: &WebhookStore,
    endpoint: EndpointReference,
    id: WebhookDeliveryId,
) -> Result<WebhookDeliveryDetails, RequestError> {
    read_webhook(store, endpoint).await?;
    let found = store.find_delivery(endpoint, id).await?;
    let LoggedDelivery { delivery, payload, attempts } = found.ok_or(RequestError::DeliveryNotFound)?;
    let payload = payload.as_deref().map(serde_json::from_str).transpose()?;
    Ok(WebhookDeliveryDetails { delivery, payload, attempt_log: attempts })
}
