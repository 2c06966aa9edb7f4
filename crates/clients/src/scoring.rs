//! Calls to scoring-worker.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::Progress;
use assay_contracts::tenant::{Scopes, Tenant};
use assay_platform::auth::ServiceClaims;

use super::{ClientError, ServiceClient};

/// Client of scoring-worker.
#[derive(Clone)]
pub struct ScoringClient {
    service: ServiceClient,
}

impl ScoringClient {
    /// Wraps `service`, whose audience must be scoring-worker.
    pub fn new(service: ServiceClient) -> Self {
        Self { service }
    }

    /// How many evaluations of an organization were ever recorded.
    ///
    /// # Errors
    /// When scoring-worker is unreachable or responds with an error.
    pub async fn progress(&self, organization_id: OrganizationId) -> Result<Progress, ClientError> {
        let tenant = Tenant { organization_id, scopes: Scopes::from_iter([]) };
        self.service.get_json(&ServiceClaims::Tenant(tenant), "/internal/v1/progress").await
    }
}
