//! `/internal/v1/console`: sessions of the console.

use actix_web::web::{Data, Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use assay_contracts::console::{
    BeginSession, FindSession, FoundSession, SessionList, SignInCredential, SignInOutcome,
};
use assay_contracts::ids::SessionId;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::auth::{ApiKeyHash, TokenHash};
use assay_platform::web::{Caller, WebError};

use super::{Services, read_as, read_before};
use crate::app::console_sessions::{self, Credential};

/// Begins a session.
pub async fn begin(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<Json<SignInOutcome>, WebError> {
    caller.require_service()?;
    let body: BeginSession = read_as(&services, &request, payload).await?;
    let credential = match &body.credential {
        SignInCredential::LinkSha256(hash) => TokenHash::from_hex(hash).map(Credential::Link),
        SignInCredential::KeySha256(hash) => ApiKeyHash::from_hex(hash).map(Credential::Key),
    };
    let credential = credential.ok_or_else(invalid_hash)?;
    let token = TokenHash::from_hex(&body.token_sha256).ok_or_else(invalid_hash)?;
    let (store, uses) = (&services.store, &services.key_uses);
    let outcome =
        console_sessions::begin(store, uses, services.session_limits, credential, token, &body.browser)
            .await?;
    Ok(Json(outcome))
}

/// The session of a token.
pub async fn find(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
    payload: Payload,
) -> Result<Json<FoundSession>, WebError> {
    caller.require_service()?;
    let body: FindSession = read_as(&services, &request, payload).await?;
    let token = TokenHash::from_hex(&body.token_sha256).ok_or_else(invalid_hash)?;
    let session = console_sessions::find(&services.store, services.session_limits, token).await?;
    Ok(Json(FoundSession { session }))
}

/// The sessions of the organization, newest first; with `?before=ID` those that began before this one.
pub async fn list(
    caller: Caller,
    services: Data<Services>,
    request: HttpRequest,
) -> Result<Json<SessionList>, WebError> {
    let organization_id = caller.tenant(Scope::Console)?.organization_id;
    let before = read_before(&request)?;
    let (store, limits) = (&services.store, services.session_limits);
    let sessions = console_sessions::list(store, limits, organization_id, before).await?;
    Ok(Json(SessionList { sessions }))
}

/// Ends a session of the organization: 204, also when there is none with this id.
pub async fn end(
    caller: Caller,
    services: Data<Services>,
    id: Path<String>,
) -> Result<HttpResponse, WebError> {
    let organization_id = caller.tenant(Scope::Console)?.organization_id;
    let id: SessionId =
        id.parse().map_err(|_| WebError::new(ProblemCode::InvalidRequest, "the id is not a session id"))?;
    console_sessions::end(&services.store, organization_id, id).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn invalid_hash() -> WebError {
    WebError::new(ProblemCode::InvalidRequest, "a hash must have 64 hexadecimal digits")
}
