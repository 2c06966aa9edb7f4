//! Sessions of the console, and its view of an organization's keys and agents: requests and responses between console and
//! agent-registry. Not public; both ends are at most one release apart.

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::ids::{ApiKeyId, OrganizationId, SessionId};
use crate::tenant::Scopes;
use crate::time::Timestamp;

/// Console → agent-registry: begin a session. The credential and the session's token are sent as hashes only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginSession {
    /// What the person signs in with.
    pub credential: SignInCredential,
    /// SHA-256 of the new session's token, lower-case hexadecimal.
    pub token_sha256: String,
    /// `User-Agent` header of the browser, truncated; shown in the list of sessions.
    pub browser: String,
}

/// What a person signs in with, as SHA-256 in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInCredential {
    /// The token of a sign-in link, which works once.
    LinkSha256(String),
    /// An API key with the scope `console`.
    KeySha256(String),
}

/// Response to [`BeginSession`]; always a 200: a 401 would mean that the console's own token was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInOutcome {
    /// The session began.
    Begun(Session),
    /// The credential is unknown, expired, used up or revoked.
    Refused,
    /// The API key is valid but lacks the scope `console`.
    ScopeMissing,
}

/// Console → agent-registry: find the session of a cookie. The request counts as a use of the session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindSession {
    /// SHA-256 of the session's token, lower-case hexadecimal.
    pub token_sha256: String,
}

/// Response to [`FindSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSession {
    /// Absent when the session is unknown, signed out, idle for too long or expired, or when its API key was revoked.
    pub session: Option<Session>,
}

/// A valid session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Session id.
    pub id: SessionId,
    /// The organization that the person is signed in to.
    pub organization_id: OrganizationId,
    /// Name of the organization.
    pub organization: String,
    /// Absolute expiry; use does not extend it.
    pub expires_at: Timestamp,
}

/// An entry in the list of an organization's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEntry {
    /// Session id.
    pub id: SessionId,
    /// `User-Agent` header of the browser, truncated.
    pub browser: String,
    /// Name of the API key that began the session; absent for a sign-in link.
    pub key_name: Option<String>,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// Last use, recorded to the minute.
    pub last_used_at: Timestamp,
    /// Absolute expiry; use does not extend it.
    pub expires_at: Timestamp,
}

/// Response: the valid sessions of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// Newest first, at most 200.
    pub sessions: Vec<SessionEntry>,
}

/// An API key in a list; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// Id of the key's record.
    pub id: ApiKeyId,
    /// Purpose of the key, given by its creator.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// When it was created.
    pub created_at: Timestamp,
    /// Last use, recorded to the minute; absent before the first one.
    pub last_used_at: Option<Timestamp>,
    /// When the key expires; never when absent.
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked; absent when it was not.
    pub revoked_at: Option<Timestamp>,
}

/// Response: the keys of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// At most a thousand; with `?before=ID` those that were created before this one.
    pub keys: Vec<KeyEntry>,
}

/// Console → agent-registry: create a key for the token's organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKeyRequest {
    /// Purpose of the key, given by its creator.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Scopes,
    /// When the key expires; never when absent.
    pub expires_at: Option<Timestamp>,
}

/// Response to [`NewKeyRequest`]: the only response that has the key in plain text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKey {
    /// Id of the key's record.
    pub id: ApiKeyId,
    /// The key in plain text.
    pub key: String,
}

/// Response: the agents of the token's organization, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentList {
    /// At most a thousand; with `?before=ID` those that were registered before this one. Names and external ids have at most
    /// 100 characters and `…`.
    pub agents: Vec<Agent>,
    /// All agents of the organization; absent from an earlier release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}
