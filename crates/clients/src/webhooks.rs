//! Calls to webhooks.

use std::collections::HashSet;

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::InterestPage;
use assay_platform::auth::ServiceClaims;

use super::{ClientError, Service};

/// webhooks as others see it.
#[derive(Clone)]
pub struct WebhooksClient {
    service: Service,
}

impl WebhooksClient {
    /// Through `service`, which must be made for webhooks.
    pub fn new(service: Service) -> Self {
        Self { service }
    }

    /// The organizations that want to be told of evaluations: all of them, page by page.
    ///
    /// # Errors
    /// When webhooks cannot be reached or cannot answer a page: then nothing is known.
    pub async fn interest(&self) -> Result<HashSet<OrganizationId>, ClientError> {
        let (mut organizations, mut path) = (HashSet::new(), "/internal/v1/interest".to_owned());
        loop {
            let page: InterestPage = self.service.get_json(&ServiceClaims::Service, &path).await?;
            organizations.extend(page.organizations);
            let Some(next) = page.next else { return Ok(organizations) };
            path = format!("/internal/v1/interest?after={next}");
        }
    }
}
