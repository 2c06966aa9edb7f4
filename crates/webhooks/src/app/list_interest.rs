//! Who wants to be told of evaluations: scoring-worker asks, so that it need not announce what nobody wants to know.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::InterestPage;
use assay_platform::db::DatabaseError;

use crate::store::WebhookStore;

/// Organizations of a page.
const PAGE: u32 = 1_000;

/// A page of the organizations that want to be told of evaluations.
pub(crate) async fn list_interest(
    store: &dyn WebhookStore,
    after: Option<OrganizationId>,
) -> Result<InterestPage, DatabaseError> {
    let organizations = store.interested(after, PAGE).await?;
    let is_full = organizations.len() >= PAGE as usize;
    let next = organizations.last().copied().filter(|_| is_full);
    Ok(InterestPage { organizations, next })
}
