//! Lists the organizations with a webhook for evaluations: scoring-worker publishes notifications only for those.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::InterestPage;
use assay_platform::db::DatabaseError;

use crate::store::WebhookStore;

const PAGE: u32 = 1_000;

/// A page of the organizations with a webhook for evaluations.
pub(crate) async fn list_evaluation_subscribers(
    store: &dyn WebhookStore,
    after: Option<OrganizationId>,
) -> Result<InterestPage, DatabaseError> {
    let organizations = store.evaluation_subscribers(after, PAGE).await?;
    let is_full = organizations.len() >= PAGE as usize;
    let next = organizations.last().copied().filter(|_| is_full);
    Ok(InterestPage { organizations, next })
}
