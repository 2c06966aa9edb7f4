//! Authentication and authorization, before the body is read: in a middleware, because the extractors of a handler run
//! concurrently.

use std::cell::OnceCell;
use std::rc::Rc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, HeaderName, RETRY_AFTER};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage as _, HttpRequest, web};
use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::KeyGrant;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::{Scope, Tenant};
use assay_platform::auth::ServiceClaims;
use assay_platform::web::{WebError, hold_large_until_sent};

use super::context::{Gateway, share_exhausted, ticket_not_found, too_many_in_flight};
use crate::app::{RateLimit, Slot};
use crate::domain::bearer_key;
use crate::metrics::{AuthenticationFailure, count_authentication_failure};

/// The authenticated caller, set by this middleware.
#[derive(Clone)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) organization_id: OrganizationId,
    /// For calls to services on the caller's behalf.
    pub(crate) claims: ServiceClaims,
    /// The slot that the request occupies, until its response is sent.
    slot: Rc<OnceCell<Slot>>,
}

impl AuthenticatedCaller {
    /// Occupies one of the gateway's slots for requests in flight, until the response is sent.
    ///
    /// # Errors
    /// 503 when all slots are occupied, 429 when the organization has its share of them.
    pub(crate) fn occupy_slot(&self, gateway: &Gateway) -> Result<(), WebError> {
        let slot = gateway.in_flight.acquire().ok_or_else(too_many_in_flight)?;
        let slot = slot.assign_to(self.organization_id).map_err(share_exhausted)?;
        self.slot.set(slot).map_err(|_| WebError::internal(&"request with two slots"))
    }
}

/// Requires a valid API key with `scope`; otherwise the answer is 401, 403, 429 or 503.
pub(crate) async fn authenticate(
    scope: Scope,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let gateway = gateway(request.request())?;
    let grant = find_grant(&gateway, &request).await?;
    let Some(grant) = grant else { return Err(unauthorized().into()) };
    let caller = authorize(&gateway, grant, scope)?;
    handle_as(caller, request, next).await
}

/// [`authenticate`] for tickets: reading a ticket without a valid key is answered like an unknown ticket, because the API has no 401
/// for it; deletion has a 401.
pub(crate) async fn authenticate_or_not_found(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let gateway = gateway(request.request())?;
    let Some(grant) = find_grant(&gateway, &request).await? else {
        return Err(
            if request.method() == Method::DELETE { unauthorized() } else { ticket_not_found() }.into()
        );
    };
    let caller = authorize(&gateway, grant, Scope::Tickets)?;
    handle_as(caller, request, next).await
}

fn unauthorized() -> WebError {
    WebError::unauthorized("send a valid API key as `Authorization: Bearer <key>`")
}

pub(super) fn gateway(request: &HttpRequest) -> Result<web::Data<Gateway>, WebError> {
    request
        .app_data::<web::Data<Gateway>>()
        .cloned()
        .ok_or_else(|| WebError::internal(&"gateway without its state"))
}

async fn find_grant(gateway: &Gateway, request: &ServiceRequest) -> Result<Option<KeyGrant>, WebError> {
    // Several Authorization headers are ambiguous: treated as none.
    let mut headers = request.headers().get_all(AUTHORIZATION);
    let Some(header) = headers.next().filter(|_| headers.next().is_none()) else {
        count_authentication_failure(AuthenticationFailure::Missing);
        return Ok(None);
    };
    let Some(key) = std::str::from_utf8(header.as_bytes()).ok().and_then(bearer_key) else {
        count_authentication_failure(AuthenticationFailure::Malformed);
        return Ok(None);
    };
    match gateway.keys.resolve(&key).await {
        Ok(Some(grant)) => Ok(Some(grant)),
        Ok(None) => {
            count_authentication_failure(AuthenticationFailure::Unknown);
            Ok(None)
        }
        // Any failure is internal, between the gateway and the registry: the client can only try again.
        Err(error) => {
            count_authentication_failure(AuthenticationFailure::Unavailable);
            Err(WebError::unavailable(&error))
        }
    }
}

/// Handles the request as one of this caller. A large response keeps the slot of the request until it is sent.
async fn handle_as(
    caller: AuthenticatedCaller,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let slot = Rc::clone(&caller.slot);
    request.extensions_mut().insert(caller);
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| hold_large_until_sent(body.boxed(), slot)))
}

fn authorize(gateway: &Gateway, grant: KeyGrant, scope: Scope) -> Result<AuthenticatedCaller, WebError> {
    if !grant.scopes.allows(scope) {
        return Err(WebError::new(ProblemCode::Forbidden, format!("the API key needs the scope `{scope}`")));
    }
    if let Some(limit) = &gateway.rate_limit {
        limit.check(grant.key_id).map_err(|wait| rate_limited(limit, wait))?;
    }
    let organization_id = grant.organization_id;
    let claims = ServiceClaims::Tenant(Tenant { organization_id, scopes: grant.scopes });
    Ok(AuthenticatedCaller { organization_id, claims, slot: Rc::default() })
}

fn rate_limited(limit: &RateLimit, wait: std::time::Duration) -> WebError {
    let seconds = wait.as_secs() + 1;
    let per_second = limit.per_second();
    WebError::new(ProblemCode::RateLimited, format!("this API key may make {per_second} requests a second"))
        .with_header(RETRY_AFTER, &seconds.to_string())
        .with_header(HeaderName::from_static("ratelimit-policy"), &format!("\"key\";q={per_second};w=1"))
        .with_header(HeaderName::from_static("ratelimit"), &format!("\"key\";r=0;t={seconds}"))
}
