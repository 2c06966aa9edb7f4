//! Sessions: begin and find.

use assay_clients::ClientError;
use assay_contracts::console::{
    BeginSession, FindSession, FoundSession, Session, SignInCredential, SignInOutcome,
};
use assay_platform::auth::{RandomToken, ServiceClaims};

use super::services::Services;

/// Begins a session under a new token, of which only the hash is sent.
pub(crate) async fn begin_session(
    services: &Services,
    credential: SignInCredential,
    token: &RandomToken,
    user_agent: &str,
) -> Result<SignInOutcome, ClientError> {
    let body =
        BeginSession { credential, token_sha256: token.hash().to_string(), browser: user_agent.to_owned() };
    let path = "/internal/v1/console/sessions";
    services.registry.post_json(&ServiceClaims::Service, path, &body).await
}

/// The session of a token; `None` when there is none that is still valid.
pub(crate) async fn find_session(
    services: &Services,
    token: &RandomToken,
) -> Result<Option<Session>, ClientError> {
    let body = FindSession { token_sha256: token.hash().to_string() };
    let path = "/internal/v1/console/sessions/find";
    let found: FoundSession = services.registry.post_json(&ServiceClaims::Service, path, &body).await?;
    Ok(found.session)
}
