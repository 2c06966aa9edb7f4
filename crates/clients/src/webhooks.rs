//! Calls to the role `webhooks`: which organizations are subscribers.

use std::collections::HashSet;

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::SubscribersPage;
use assay_platform::auth::ServiceClaims;

use super::{ClientError, ServiceClient};

/// Client of the role `webhooks`.
#[derive(Clone)]
pub struct WebhooksClient {
    service: ServiceClient,
}

impl WebhooksClient {
    /// Wraps `service`, whose audience must be webhooks.
    pub fn new(service: ServiceClient) -> Self {
        Self { service }
    }

    /// All organizations with an enabled endpoint for evaluations, read page by page.
    ///
    /// # Errors
    /// When webhooks is unreachable or responds with an error: there is no partial result.
    pub async fn subscribers(&self) -> Result<HashSet<OrganizationId>, ClientError> {
        let (mut organizations, mut path) = (HashSet::new(), "/internal/v1/interest".to_owned());
        loop {
            let page: SubscribersPage = self.service.get_json(&ServiceClaims::Service, &path).await?;
            organizations.extend(page.organizations);
            let Some(next) = page.next else { return Ok(organizations) };
            path = format!("/internal/v1/interest?after={next}");
        }
    }
}
