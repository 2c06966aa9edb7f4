//! The delivery log of an endpoint.

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::page::Page;
use assay_contracts::webhook::{DeliveryStatus, WebhookDelivery, WebhookDeliveryDetails};
use assay_platform::auth::SigningKeys;
use assay_platform::web::cursor::{Cursors, Position};

use super::{RequestError, read_webhook};
use crate::store::{LogPage, LoggedDelivery, WebhookStore};

pub(crate) struct ListDeliveries {
    pub(crate) organization_id: OrganizationId,
    pub(crate) endpoint_id: WebhookId,
    pub(crate) status: Option<DeliveryStatus>,
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u32,
}

/// A page of the delivery log, newest first.
pub(crate) async fn list_deliveries(
    store: &WebhookStore,
    keys: &SigningKeys,
    request: ListDeliveries,
) -> Result<Page<WebhookDelivery>, RequestError> {
    let ListDeliveries { organization_id, endpoint_id, status, cursor, limit } = request;
    read_webhook(store, organization_id, endpoint_id).await?;
    let cursors = Cursors::new(keys, &format!("deliveries of {organization_id} to {endpoint_id}"));
    let after = cursor.map(|cursor| cursors.open(&cursor)).transpose()?;
    let page = LogPage { organization_id, endpoint_id, status, after, limit: limit.saturating_add(1) };
    let found = store.log(page).await?;
    Ok(cursors.page(found, limit, |last| Position { created_at: last.created_at, id: last.id.as_uuid() }))
}

/// One message with its attempts.
pub(crate) async fn read_delivery(
    store: &WebhookStore,
    organization_id: OrganizationId,
    endpoint_id: WebhookId,
    id: WebhookDeliveryId,
) -> Result<WebhookDeliveryDetails, RequestError> {
    read_webhook(store, organization_id, endpoint_id).await?;
    let found = store.find_delivery(organization_id, endpoint_id, id).await?;
    let LoggedDelivery { delivery, payload, attempts } = found.ok_or(RequestError::DeliveryNotFound)?;
    let payload = payload.as_deref().map(serde_json::from_str).transpose()?;
    Ok(WebhookDeliveryDetails { delivery, payload, attempt_log: attempts })
}
