//! `/internal/v1/console`: sessions of the console.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path, Payload};
use assay_contracts::console::{
    BeginSession, FindSession, FoundSession, SessionList, SignInCredential, SignInOutcome,
};
use assay_contracts::ids::SessionId;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::auth::{ApiKeyHash, TokenHash};
use assay_platform::web::WebError;

use super::{Call, read_before, read_service_body};
use crate::app::console_sessions::{self, Credential};

/// Begins a session.
pub async fn begin(call: Call, payload: Payload) -> Result<Json<SignInOutcome>, WebError> {
    call.caller.require_service()?;
    let body: BeginSession = read_service_body(&call, payload).await?;
    let credential = match &body.credential {
        SignInCredential::LinkSha256(hash) => TokenHash::from_hex(hash).map(Credential::Link),
        SignInCredential::KeySha256(hash) => ApiKeyHash::from_hex(hash).map(Credential::Key),
    };
    let credential = credential.ok_or_else(invalid_hash)?;
    let token = TokenHash::from_hex(&body.token_sha256).ok_or_else(invalid_hash)?;
    let (store, uses) = (&call.services.store, &call.services.key_uses);
    let outcome =
        console_sessions::begin(store, uses, call.services.session_limits, credential, token, &body.browser)
            .await?;
    Ok(Json(outcome))
}

/// The session of a token.
pub async fn find(call: Call, payload: Payload) -> Result<Json<FoundSession>, WebError> {
    call.caller.require_service()?;
    let body: FindSession = read_service_body(&call, payload).await?;
    let token = TokenHash::from_hex(&body.token_sha256).ok_or_else(invalid_hash)?;
    let session = console_sessions::find(&call.services.store, call.services.session_limits, token).await?;
    Ok(Json(FoundSession { session }))
}

/// The sessions of the organization, newest first; with `?before=ID` those that began before this one.
pub async fn list(call: Call) -> Result<Json<SessionList>, WebError> {
    let organization_id = call.organization_with(Scope::Console)?;
    let before = read_before(&call.request)?;
    let (store, limits) = (&call.services.store, call.services.session_limits);
    let sessions = console_sessions::list(store, limits, organization_id, before).await?;
    Ok(Json(SessionList { sessions }))
}

/// Ends a session of the organization: 204, also when there is none with this id.
pub async fn end(call: Call, id: Path<String>) -> Result<HttpResponse, WebError> {
    let organization_id = call.organization_with(Scope::Console)?;
    let id: SessionId =
        id.parse().map_err(|_| WebError::new(ProblemCode::InvalidRequest, "the id is not a session id"))?;
    call.services.store.end_session(organization_id, id).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn invalid_hash() -> WebError {
    WebError::new(ProblemCode::InvalidRequest, "a hash must have 64 hexadecimal digits")
}
