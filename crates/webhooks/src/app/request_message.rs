//! Messages queued on request: a replay of an earlier one, or a test message.

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::webhook::WebhookDelivery;
use assay_platform::runtime::{new_id, now};

use super::{RequestError, read_webhook};
use crate::domain::endpoint::Endpoint;
use crate::domain::message::test_message;
use crate::store::{ReplayOutcome, WebhookStore};

/// Queues a message again, with the same id.
pub(crate) async fn replay_delivery(
    store: &WebhookStore,
    organization_id: OrganizationId,
    endpoint_id: WebhookId,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, organization_id, endpoint_id).await?;
    let found = store.find_delivery(organization_id, endpoint_id, id).await?;
    if found.is_none() {
        return Err(RequestError::DeliveryNotFound);
    }
    require_enabled(&endpoint)?;
    match store.replay(organization_id, endpoint_id, id, now()).await? {
        ReplayOutcome::Queued => read_queued(store, &endpoint, id).await,
        ReplayOutcome::NotFound => Err(RequestError::DeliveryNotFound),
        ReplayOutcome::Erased => Err(RequestError::Erased),
    }
}

/// Queues a test message.
pub(crate) async fn send_test(
    store: &WebhookStore,
    organization_id: OrganizationId,
    endpoint_id: WebhookId,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, organization_id, endpoint_id).await?;
    require_enabled(&endpoint)?;
    let (id, now) = (new_id(), now());
    store.add(&endpoint, id, test_message(endpoint_id, now)?, now).await?;
    read_queued(store, &endpoint, id).await
}

fn require_enabled(endpoint: &Endpoint) -> Result<(), RequestError> {
    if endpoint.enabled { Ok(()) } else { Err(RequestError::Disabled) }
}

async fn read_queued(
    store: &WebhookStore,
    endpoint: &Endpoint,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let found = store.find_delivery(endpoint.organization_id, endpoint.id, id).await?;
    found.map(|found| found.delivery).ok_or(RequestError::DeliveryNotFound)
}
