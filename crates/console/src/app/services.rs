//! The clients of the services, and calls that they have in common.

use assay_clients::{Call, ClientError, ServiceClient};
use assay_contracts::ids::OrganizationId;
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_platform::auth::ServiceClaims;
use reqwest::Method;
use reqwest::header::HeaderMap;

pub(crate) struct Services {
    pub(crate) registry: ServiceClient,
    pub(crate) ingest: ServiceClient,
    pub(crate) scoring: ServiceClient,
    pub(crate) export: ServiceClient,
    /// `None` when webhooks are turned off.
    pub(crate) webhooks: Option<ServiceClient>,
}

/// The claims of a signed-in person: all scopes except `admin`, which is for administering the installation.
pub(crate) fn claims_of(organization_id: OrganizationId) -> ServiceClaims {
    let scopes = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::Admin);
    ServiceClaims::Tenant(Tenant { organization_id, scopes: Scopes::from_iter(scopes) })
}

/// The services on behalf of a signed-in person.
#[derive(Clone, Copy)]
pub(crate) struct OrganizationServices<'v> {
    pub(crate) services: &'v Services,
    pub(crate) claims: &'v ServiceClaims,
}

/// Sends a request without a body and ignores the body of the response.
pub(crate) async fn send_without_body(
    service: &ServiceClient,
    claims: &ServiceClaims,
    method: Method,
    path: &str,
) -> Result<(), ClientError> {
    service.call_ignoring_body(claims, Call { method, path, headers: HeaderMap::new(), body: None }).await
}
