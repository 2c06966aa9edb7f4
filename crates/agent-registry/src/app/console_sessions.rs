//! Sessions of the console: begin, find, list.

use assay_contracts::console::{Session, SessionEntry, SignInOutcome};
use assay_contracts::ids::{OrganizationId, SessionId};
use assay_contracts::tenant::Scope;
use assay_contracts::time::Timestamp;
use assay_platform::auth::{ApiKeyHash, RandomToken, TokenHash};
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{RandomnessUnavailable, new_id, now};

use super::record_key_use::KeyUses;
use crate::domain::{OrganizationName, SIGN_IN_LINK_MILLIS, SessionLimits, SignIn, clean_user_agent};
use crate::store::{self, SessionToStore, Store};

/// The credential of a person who signs in.
pub enum Credential {
    Link(TokenHash),
    Key(ApiKeyHash),
}

#[derive(Debug, thiserror::Error)]
pub enum CreateSignInTokenError {
    #[error("there is no organization with this name; `assay keys create` makes one")]
    UnknownOrganization,
    #[error(transparent)]
    Randomness(#[from] RandomnessUnavailable),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Creates a sign-in link and returns its token, which signs in to the console of an organization once, within the hour.
///
/// # Errors
/// [`CreateSignInTokenError`].
pub async fn create_sign_in_token(
    database: &Database,
    organization: OrganizationName,
) -> Result<RandomToken, CreateSignInTokenError> {
    let token = RandomToken::generate()?;
    let expires_at = now().plus_millis(SIGN_IN_LINK_MILLIS);
    if store::open(database).create_sign_in_link(organization, token.hash(), expires_at).await? {
        Ok(token)
    } else {
        Err(CreateSignInTokenError::UnknownOrganization)
    }
}

/// Begins a session.
///
/// # Errors
/// When the database fails.
pub async fn begin(
    store: &Store,
    uses: &KeyUses,
    limits: SessionLimits,
    credential: Credential,
    token: TokenHash,
    browser: &str,
) -> Result<SignInOutcome, DatabaseError> {
    let created_at = now();
    let sign_in = match credential {
        Credential::Link(link) => SignIn::Link(link),
        Credential::Key(hash) => {
            let Some(key) = store.find_active_key(hash, created_at).await? else {
                return Ok(SignInOutcome::Refused);
            };
            if !key.scopes.allows(Scope::Console) {
                return Ok(SignInOutcome::ScopeMissing);
            }
            uses.push(key.id, created_at);
            SignIn::Key { id: key.id, organization_id: key.organization_id }
        }
    };
    let new = SessionToStore {
        id: new_id(),
        sign_in,
        token,
        browser: clean_user_agent(browser),
        created_at,
        expires_at: created_at.plus_millis(limits.total_millis),
    };
    let begun = store.begin_session(new).await?;
    Ok(begun.map_or(SignInOutcome::Refused, SignInOutcome::Begun))
}

/// The session of a token, if it is active. The look-up counts as a use of the session.
///
/// # Errors
/// When the database fails.
pub async fn find(
    store: &Store,
    limits: SessionLimits,
    token: TokenHash,
) -> Result<Option<Session>, DatabaseError> {
    let now = now();
    let Some(found) = store.find_session(token, idle_since(limits, now), now).await? else {
        return Ok(None);
    };
    if found.should_record_use(now) {
        store.record_session_use(found.session.id, now).await?;
    }
    Ok(Some(found.session))
}

/// The active sessions of an organization, newest first, at most [`crate::store::MAX_LISTED_SESSIONS`]; with `before` those
/// that began before this session.
///
/// # Errors
/// When the database fails.
pub async fn list(
    store: &Store,
    limits: SessionLimits,
    organization_id: OrganizationId,
    before: Option<SessionId>,
) -> Result<Vec<SessionEntry>, DatabaseError> {
    let now = now();
    store.list_sessions(organization_id, before, idle_since(limits, now), now).await
}

/// A session that was last used at this time or before has ended.
pub fn idle_since(limits: SessionLimits, now: Timestamp) -> Timestamp {
    now.plus_millis(-limits.idle_millis)
}
