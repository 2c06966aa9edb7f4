//! Lists, reads, changes and deletes endpoints.

use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::page::{Page, PageInfo};
use assay_contracts::webhook::{Webhook, WebhookChange};
use assay_platform::auth::SigningKeys;
use assay_platform::runtime::now;
use uuid::Uuid;

use super::RequestError;
use crate::domain::address::AddressRules;
use crate::domain::endpoint::Endpoint;
use crate::domain::position::{CursorScope, Position};
use crate::store::WebhookStore;

pub(crate) struct ListWebhooks {
    pub(crate) organization_id: OrganizationId,
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u32,
}

/// A page of endpoints, newest first.
pub(crate) async fn list_webhooks(
    store: &dyn WebhookStore,
    keys: &SigningKeys,
    request: ListWebhooks,
) -> Result<Page<Webhook>, RequestError> {
    let ListWebhooks { organization_id, cursor, limit } = request;
    let scope = CursorScope { organization_id, endpoint: Uuid::nil() };
    let after = cursor.map(|cursor| Position::open(keys, scope, &cursor)).transpose()?;
    let found = store.page(organization_id, after, limit.saturating_add(1)).await?;
    let position =
        |endpoint: &Endpoint| Position { created_at: endpoint.created_at, id: endpoint.id.as_uuid() };
    let (found, page_info) = paginate(found, limit, |last| position(last).seal(keys, scope));
    Ok(Page { data: found.into_iter().map(Webhook::from).collect(), page_info })
}

/// Cuts a result of at most `limit + 1` items to a page: the extra item shows that there is a next page.
pub(super) fn paginate<T>(
    mut found: Vec<T>,
    limit: u32,
    cursor: impl Fn(&T) -> String,
) -> (Vec<T>, PageInfo) {
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_next_page = found.len() > wanted;
    found.truncate(wanted);
    let next_cursor = found.last().filter(|_| has_next_page).map(cursor);
    (found, PageInfo { has_next_page, limit, next_cursor })
}

pub(crate) async fn read_webhook(
    store: &dyn WebhookStore,
    organization_id: OrganizationId,
    id: WebhookId,
) -> Result<Endpoint, RequestError> {
    store.find(organization_id, id).await?.ok_or(RequestError::NotFound)
}

pub(crate) async fn change_webhook(
    store: &dyn WebhookStore,
    rules: &AddressRules,
    organization_id: OrganizationId,
    id: WebhookId,
    change: WebhookChange,
) -> Result<Webhook, RequestError> {
    // Existence first: an invalid address must not reveal whether another organization's endpoint exists.
    read_webhook(store, organization_id, id).await?;
    if let Some(url) = &change.url {
        rules.check_url(url)?;
    }
    let changed = store.change(organization_id, id, change, now()).await?;
    changed.map(Webhook::from).ok_or(RequestError::NotFound)
}

/// Deletes an endpoint together with its messages.
pub(crate) async fn delete_webhook(
    store: &dyn WebhookStore,
    organization_id: OrganizationId,
    id: WebhookId,
) -> Result<(), RequestError> {
    match store.delete(organization_id, id, now()).await? {
        true => Ok(()),
        false => Err(RequestError::NotFound),
    }
}
