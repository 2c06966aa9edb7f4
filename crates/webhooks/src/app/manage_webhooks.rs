//! Lists, reads, changes and deletes endpoints.

use assay_contracts::ids::OrganizationId;
use assay_contracts::page::Page;
use assay_contracts::webhook::{Webhook, WebhookChange};
use assay_platform::auth::KeyRing;
use assay_platform::runtime::now;
use assay_platform::web::cursor::{Cursors, Position};

use super::RequestError;
use crate::domain::address::AddressRules;
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::store::WebhookStore;

/// A page of endpoints, newest first.
pub(crate) async fn list_webhooks(
    store: &WebhookStore,
    keys: &KeyRing,
    organization_id: OrganizationId,
    (cursor, limit): (Option<String>, u32),
) -> Result<Page<Webhook>, RequestError> {
    let cursors = Cursors::new(keys, &format!("webhooks of {organization_id}"));
    let after = cursor.map(|cursor| cursors.decode(&cursor)).transpose()?;
    let found = store.list_endpoints(organization_id, after, limit.saturating_add(1)).await?;
    let position = |last: &Endpoint| Position { created_at: last.created_at, id: last.id.as_uuid() };
    let Page { data, page_info } = cursors.page(found, limit, position);
    Ok(Page { data: data.into_iter().map(Webhook::from).collect(), page_info })
}

pub(crate) async fn read_webhook(
    store: &WebhookStore,
    endpoint: EndpointReference,
) -> Result<Endpoint, RequestError> {
    store.find(endpoint).await?.ok_or(RequestError::NotFound)
}

pub(crate) async fn change_webhook(
    store: &WebhookStore,
    rules: &AddressRules,
    endpoint: EndpointReference,
    change: WebhookChange,
) -> Result<Webhook, RequestError> {
    // Existence first: an unknown endpoint, or another organization's, is reported as such whatever the address.
    read_webhook(store, endpoint).await?;
    if let Some(url) = &change.url {
        rules.check_url(url)?;
    }
    let changed = store.change(endpoint, change, now()).await?;
    changed.map(Webhook::from).ok_or(RequestError::NotFound)
}

/// Deletes an endpoint; maintenance removes its messages.
pub(crate) async fn delete_webhook(
    store: &WebhookStore,
    endpoint: EndpointReference,
) -> Result<(), RequestError> {
    if store.delete(endpoint, now()).await? { Ok(()) } else { Err(RequestError::NotFound) }
}
