//! Messages that their owner asks for: one that was sent before, and a trial.

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::webhook::WebhookDelivery;
use assay_platform::runtime::{new_id, now};

use super::{RequestError, read_webhook};
use crate::domain::endpoint::Endpoint;
use crate::domain::message::test_message;
use crate::store::{Replayed, WebhookStore};

/// Has a message sent again, under its id.
pub(crate) async fn replay_delivery(
    store: &dyn WebhookStore,
    organization_id: OrganizationId,
    endpoint_id: WebhookId,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, organization_id, endpoint_id).await?;
    let found = store.find_delivery(organization_id, endpoint_id, id).await?;
    if found.is_none() {
        return Err(RequestError::DeliveryNotFound);
    }
    is_enabled(&endpoint)?;
    match store.replay(organization_id, endpoint_id, id, now()).await? {
        Replayed::Queued => queued(store, &endpoint, id).await,
        Replayed::NotFound => Err(RequestError::DeliveryNotFound),
        Replayed::Erased => Err(RequestError::Erased),
    }
}

/// Has a trial message sent.
pub(crate) async fn send_test(
    store: &dyn WebhookStore,
    organization_id: OrganizationId,
    endpoint_id: WebhookId,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, organization_id, endpoint_id).await?;
    is_enabled(&endpoint)?;
    let (id, now) = (new_id(), now());
    store.add(&endpoint, id, test_message(endpoint_id, now)?, now).await?;
    queued(store, &endpoint, id).await
}

fn is_enabled(endpoint: &Endpoint) -> Result<(), RequestError> {
    if endpoint.enabled { Ok(()) } else { Err(RequestError::Disabled) }
}

async fn queued(
    store: &dyn WebhookStore,
    endpoint: &Endpoint,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let found = store.find_delivery(endpoint.organization_id, endpoint.id, id).await?;
    found.map(|found| found.delivery).ok_or(RequestError::DeliveryNotFound)
}
