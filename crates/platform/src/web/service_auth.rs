//! Authentication of calls between services. A middleware and not an extractor: extractors of a handler run concurrently, and
//! a body must not be read before the caller is authenticated.

use std::future::{Ready, ready};

use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, body::MessageBody, web};
use assay_contracts::ids::OrganizationId;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::{Scope, Tenant};

use super::error::WebError;
use crate::auth::{Audience, InvalidToken, ServiceClaims, ServiceTokens};

/// App data that [`service_auth_middleware`] needs.
#[derive(Clone)]
pub struct ServiceAuth {
    /// Verifies tokens.
    pub tokens: ServiceTokens,
    /// Audience of this service.
    pub audience: Audience,
}

/// The authenticated caller; an extractor for handlers behind [`service_auth_middleware`].
#[derive(Debug, Clone)]
pub struct Caller(ServiceClaims);

impl Caller {
    /// The tenant of the call, which must have `scope`.
    ///
    /// # Errors
    /// 403 without the scope, 401 when the call is not for a tenant.
    pub fn tenant(&self, scope: Scope) -> Result<&Tenant, WebError> {
        match &self.0 {
            ServiceClaims::Tenant(tenant) if tenant.scopes.allows(scope) => Ok(tenant),
            ServiceClaims::Tenant(_) => {
                Err(WebError::new(ProblemCode::Forbidden, format!("the API key needs the scope `{scope}`")))
            }
            ServiceClaims::Service => Err(InvalidToken.into()),
        }
    }

    /// The organization of the call, whatever its scopes.
    ///
    /// # Errors
    /// 401 when the call is for no tenant.
    pub fn organization(&self) -> Result<OrganizationId, WebError> {
        match &self.0 {
            ServiceClaims::Tenant(tenant) => Ok(tenant.organization_id),
            ServiceClaims::Service => Err(InvalidToken.into()),
        }
    }

    /// Checks that a service calls on its own behalf.
    ///
    /// # Errors
    /// 401 when it calls for a tenant.
    pub fn require_service(&self) -> Result<(), WebError> {
        match &self.0 {
            ServiceClaims::Service => Ok(()),
            ServiceClaims::Tenant(_) => Err(InvalidToken.into()),
        }
    }
}

impl FromRequest for Caller {
    type Error = WebError;
    type Future = Ready<Result<Self, WebError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions().get::<Self>().cloned().ok_or_else(|| InvalidToken.into()))
    }
}

/// A call from another role, as its handler gets it behind [`service_auth_middleware`].
pub struct ServiceCall<S: 'static> {
    /// Who calls.
    pub caller: Caller,
    /// The state of the called role's handlers.
    pub services: web::Data<S>,
    /// The request without its body.
    pub request: HttpRequest,
}

impl<S: 'static> ServiceCall<S> {
    /// The organization of the call, which must have `scope`.
    ///
    /// # Errors
    /// As [`Caller::tenant`].
    pub fn organization_with(&self, scope: Scope) -> Result<OrganizationId, WebError> {
        Ok(self.caller.tenant(scope)?.organization_id)
    }

    fn of(request: &HttpRequest) -> Result<Self, WebError> {
        let caller = request.extensions().get::<Caller>().cloned().ok_or(InvalidToken)?;
        let services = request.app_data::<web::Data<S>>().cloned();
        let services = services.ok_or_else(|| WebError::internal(&"route without the state of its role"))?;
        Ok(Self { caller, services, request: request.clone() })
    }
}

impl<S: 'static> FromRequest for ServiceCall<S> {
    type Error = WebError;
    type Future = Ready<Result<Self, WebError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

/// Refuses a call whose bearer token was not made for this service. Needs [`ServiceAuth`] as app data.
pub async fn service_auth_middleware(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let caller = verify(&request)?;
    request.extensions_mut().insert(caller);
    next.call(request).await
}

fn verify(request: &ServiceRequest) -> Result<Caller, WebError> {
    let auth = request.app_data::<web::Data<ServiceAuth>>().ok_or(InvalidToken)?;
    let token = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .ok_or(InvalidToken)?;
    Ok(Caller(auth.tokens.verify(auth.audience, token)?))
}
