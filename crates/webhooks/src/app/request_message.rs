//! Messages queued on request: a replay of an earlier one, or a test message.

use assay_contracts::ids::WebhookDeliveryId;
use assay_contracts::webhook::WebhookDelivery;
use assay_platform::runtime::{new_id, now};

use super::{RequestError, read_webhook};
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::domain::message::test_message;
use crate::store::{ReplayOutcome, WebhookStore};

/// Queues a message again, with the same id.
pub(crate) async fn replay_delivery(
    store: &WebhookStore,
    reference: EndpointReference,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, reference).await?;
    read_message(store, reference, id).await?;
    require_enabled(&endpoint)?;
    match store.replay(reference, id, now()).await? {
        ReplayOutcome::Queued => read_message(store, reference, id).await,
        ReplayOutcome::NotFound => Err(RequestError::DeliveryNotFound),
        ReplayOutcome::Erased => Err(RequestError::Erased),
    }
}

/// Queues a test message.
pub(crate) async fn send_test(
    store: &WebhookStore,
    reference: EndpointReference,
) -> Result<WebhookDelivery, RequestError> {
    let endpoint = read_webhook(store, reference).await?;
    require_enabled(&endpoint)?;
    let (id, now) = (new_id(), now());
    store.add_message(&endpoint, id, test_message(endpoint.id, now)?, now).await?;
    read_message(store, reference, id).await
}

fn require_enabled(endpoint: &Endpoint) -> Result<(), RequestError> {
    if endpoint.enabled { Ok(()) } else { Err(RequestError::Disabled) }
}

async fn read_message(
    store: &WebhookStore,
    endpoint: EndpointReference,
    id: WebhookDeliveryId,
) -> Result<WebhookDelivery, RequestError> {
    let found = store.find_delivery(endpoint, id).await?;
    found.map(|found| found.delivery).ok_or(RequestError::DeliveryNotFound)
}
