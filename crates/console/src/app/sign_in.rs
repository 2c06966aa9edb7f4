//! Sessions: begin, find, end.

use assay_clients::ClientError;
use assay_contracts::console::{
    BeginSession, FindSession, FoundSession, Session, SignInCredential, SignInOutcome,
};
use assay_contracts::ids::SessionId;
use assay_platform::auth::{ApiKey, RandomToken, ServiceClaims};
use reqwest::Method;

use super::services::{Services, send, send_without_body};

/// What a person signs in with.
pub(crate) enum Credential {
    Link(RandomToken),
    Key(ApiKey),
}

/// Begins a session under a new token. Only hashes of the credential and the token are sent.
pub(crate) async fn begin_session(
    services: &Services,
    credential: &Credential,
    token: &RandomToken,
    user_agent: &str,
) -> Result<SignInOutcome, ClientError> {
    let credential = match credential {
        Credential::Link(link) => SignInCredential::LinkSha256(link.hash().to_string()),
        Credential::Key(key) => SignInCredential::KeySha256(key.hash().to_string()),
    };
    let body =
        BeginSession { credential, token_sha256: token.hash().to_string(), browser: user_agent.to_owned() };
    let path = "/internal/v1/console/sessions";
    send(&services.registry, &ServiceClaims::Service, Method::POST, path, &body).await
}

/// The session of a token; `None` when there is none that is still valid.
pub(crate) async fn find_session(
    services: &Services,
    token: &RandomToken,
) -> Result<Option<Session>, ClientError> {
    let body = FindSession { token_sha256: token.hash().to_string() };
    let path = "/internal/v1/console/sessions/find";
    let found: FoundSession =
        send(&services.registry, &ServiceClaims::Service, Method::POST, path, &body).await?;
    Ok(found.session)
}

/// Ends a session of the organization.
pub(crate) async fn end_session(
    services: &Services,
    claims: &ServiceClaims,
    id: SessionId,
) -> Result<(), ClientError> {
    send_without_body(
        &services.registry,
        claims,
        Method::DELETE,
        &format!("/internal/v1/console/sessions/{id}"),
    )
    .await
}
