//! Calls to scoring-worker.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::Progress;
use assay_contracts::tenant::{Scopes, Tenant};
use assay_platform::auth::ServiceClaims;

use super::{ClientError, Service};

/// scoring-worker as others see it.
#[derive(Clone)]
pub struct ScoringClient {
    service: Service,
}

impl ScoringClient {
    /// Through `service`, which must be made for scoring-worker.
    pub fn new(service: Service) -> Self {
        Self { service }
    }

    /// How far the evaluations of an organization are.
    ///
    /// # Errors
    /// When scoring-worker cannot be reached or cannot answer.
    pub async fn progress(&self, organization_id: OrganizationId) -> Result<Progress, ClientError> {
        let tenant = Tenant { organization_id, scopes: Scopes::from_iter([]) };
        self.service.get_json(&ServiceClaims::Tenant(tenant), "/internal/v1/progress").await
    }
}
