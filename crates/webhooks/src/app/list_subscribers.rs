//! Lists the organizations with a webhook for evaluations: scoring-worker publishes notifications only for those.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::SubscribersPage;
use assay_platform::db::DatabaseError;

use crate::store::WebhookStore;

const PAGE_SIZE: u32 = 1_000;

/// A page of the organizations with a webhook for evaluations.
pub(crate) async fn list_evaluation_subscribers(
    store: &WebhookStore,
    after: Option<OrganizationId>,
) -> Result<SubscribersPage, DatabaseError> {
    let organizations = store.evaluation_subscribers(after, PAGE_SIZE).await?;
    let is_full = organizations.len() >= PAGE_SIZE as usize;
    let next = organizations.last().copied().filter(|_| is_full);
    Ok(SubscribersPage { organizations, next })
}
